import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** From here on, systems hand out ports by themselves: to who listens on port 0, and to every connection that somebody makes. */
const HANDED_OUT_FROM = 32_768;
const LOWEST = 20_000;

/**
 * Finds ports in a row on loopback that nobody listens on, for a program that is told of its ports. None of them is one that is handed out:
 * any connection on the machine could take such a one before the program does, or while it is started anew.
 * @returns the first of them.
 */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = randomInt(LOWEST, HANDED_OUT_FROM - count);
    const servers = await Promise.all(Array.from({ length: count }, (_, at) => tryPort(first + at)));
    for (const server of servers) if (server !== null) await once(server.close(), "close");
    if (!servers.includes(null)) return first;
  }
}

function tryPort(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(null));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
