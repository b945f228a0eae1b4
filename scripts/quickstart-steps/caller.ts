import { execFileSync } from "node:child_process";
import { chownSync } from "node:fs";
import { homedir } from "node:os";

/** The calling user, who under sudo must own the files left for them. */
export interface Caller {
  readonly home: string;
  /** Null for the user of this process. */
  readonly ids: { readonly uid: number; readonly gid: number } | null;
}

export function findCaller(): Caller {
  const { SUDO_UID: user, SUDO_GID: group } = process.env;
  if (process.getuid?.() !== 0 || !user || !group || user === "0") return { home: homedir(), ids: null };
  const home = execFileSync("getent", ["passwd", user], { encoding: "utf8" }).split(":")[5] ?? "/";
  return { home, ids: { uid: Number(user), gid: Number(group) } };
}

export function giveToCaller(path: string): void {
  const { ids } = findCaller();
  if (ids !== null) chownSync(path, ids.uid, ids.gid);
}

/** Environment and user for running a program as the caller. */
export function asCaller(): { readonly env: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number } {
  const { home, ids } = findCaller();
  const client = Object.entries(process.env).filter(([name]) => !name.startsWith("FAIRLEAD_"));
  return { env: { ...Object.fromEntries(client), HOME: home }, ...ids };
}
