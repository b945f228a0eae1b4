import { createServer } from "node:net";
import { freePorts } from "@fairlead/protocol/testing/free-ports";

/** Two different ports that nobody listens on just now. */
export async function twoFreePorts(): Promise<readonly [number, number]> {
  const first = await freePorts(2);
  return [first, first + 1];
}

/** Takes a port, until it is closed. */
export async function listen(): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return { port: address.port, close: () => new Promise((resolve) => server.close(() => resolve())) };
}
