import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { basename } from "node:path";
import { QuickstartError } from "./progress.ts";

/** @throws QuickstartError that names the program using the port, if known. */
export async function requireFreePort(port: number, option: string): Promise<void> {
  const problem = await tryToListen(port);
  if (problem === "EADDRINUSE") {
    const holder = holderOf(port);
    throw new QuickstartError(
      `Port ${port} is in use${holder ? ` by ${holder}` : ""}. Stop that program or choose another port with ${option} ${suggest(port)}.`,
    );
  }
  if (problem !== null) {
    throw new QuickstartError(`Cannot use port ${port} (${problem}). Choose another one with ${option}.`);
  }
}

function suggest(port: number): number {
  return port + 1000 <= 65_535 ? port + 1000 : port - 1000;
}

async function tryToListen(port: number): Promise<string | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(null)));
  });
}

/** @returns `name (pid 123)`, or null if it is not visible (another user or namespace). */
function holderOf(port: number): string | null {
  const sockets = new Set(["tcp", "tcp6"].flatMap((family) => listeningInodes(family, port)));
  if (sockets.size === 0) return null;
  const pid = readdirSync("/proc").find(
    (entry) => /^\d+$/.test(entry) && openSockets(entry).some((inode) => sockets.has(inode)),
  );
  if (pid === undefined) return null;
  const [program = ""] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  return `${basename(program)} (pid ${pid})`;
}

/** The columns of /proc/net/tcp: 1 is the local address and port in hexadecimal, 3 the state (0A: listening), 9 the inode. */
function listeningInodes(family: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync(`/proc/net/${family}`, "utf8").split("\n").slice(1);
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter((columns) => columns[1]?.endsWith(suffix) && columns[3] === "0A")
    .flatMap((columns) => columns[9] ?? []);
}

function openSockets(pid: string): string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).flatMap((descriptor) => {
      const match = /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${descriptor}`));
      return match?.[1] ?? [];
    });
  } catch {
    // The process has ended or belongs to another user.
    return [];
  }
}
