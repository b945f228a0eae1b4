import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import { EXIT, StartError } from "../start-error.ts";

export interface StateLock {
  release(): Promise<void>;
}

/**
 * Holds a state folder for one daemon. The lock is an abstract Unix socket named after the folder's inode: the kernel frees
 * it however the process ends, so nothing stale can be left behind.
 * @throws StartError `locked` while another daemon holds it.
 */
export async function lockStateFolder(folder: string): Promise<StateLock> {
  const { dev, ino } = await stat(folder, { bigint: true });
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(`\0fairlead-daemon/${dev}:${ino}`, resolve);
  }).catch((error: unknown) => {
    const taken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    if (!taken) throw error;
    throw new StartError(
      EXIT.locked,
      `another fairlead-daemon runs on ${folder}; stop it first, or give --state-dir another folder`,
    );
  });
  server.unref();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}
