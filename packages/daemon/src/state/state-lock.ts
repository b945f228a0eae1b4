import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import { DaemonStartError, EXIT } from "../process/start-error.ts";

export interface StateLock {
  release(): Promise<void>;
}

/**
 * Locks a state folder for one daemon. The lock is an abstract Unix socket named after the folder's inode: the kernel releases
 * it whenever the process ends, so there are no stale locks.
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
    throw new DaemonStartError(
      EXIT.locked,
      `another fairlead-daemon is using ${folder}; stop it first or set --state-dir to another folder`,
    );
  });
  server.unref();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}
