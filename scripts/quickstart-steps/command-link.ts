import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { findCaller } from "./caller.ts";
import { CLI } from "./fairlead.ts";
import type { Installation } from "./installation.ts";
import type { Step } from "./progress.ts";

/** Links the command `fairlead` on the PATH to this checkout. */

const SYSTEM_FOLDER = "/usr/local/bin";

export interface CommandLink {
  /** The command to type for `fairlead`. */
  readonly command: string;
  /** A folder to add to the PATH, or null. */
  readonly missingFolder: string | null;
}

/** Never replaces the `fairlead` of another installation. */
export function ensureCommandLink(at: Installation, step: Step): CommandLink {
  const program = join(at.root, CLI);
  const folder = linkFolder();
  const link = join(folder, "fairlead");
  const missingFolder = isOnPath(folder) ? null : folder;
  const known = targetOf(link);
  if (known !== null && existsSync(link)) {
    if (realpathSync(link) === realpathSync(program)) return { command: "fairlead", missingFolder };
    step.note(`${link} belongs to another installation; use ${program}`);
    return { command: program, missingFolder: null };
  }
  // A dangling link is from a removed checkout.
  rmSync(link, { force: true });
  symlinkSync(program, link);
  writeFileSync(at.commandMark, `${link}\n`);
  step.note(link);
  return { command: "fairlead", missingFolder };
}

/** @param link created by this installation. */
export function removeCommandLink(at: Installation, link: string): void {
  if (targetOf(link) === join(at.root, CLI)) rmSync(link);
}

function linkFolder(): string {
  if (isWritable(SYSTEM_FOLDER)) return SYSTEM_FOLDER;
  const folder = join(findCaller().home, ".local", "bin");
  mkdirSync(folder, { recursive: true });
  return folder;
}

function isOnPath(folder: string): boolean {
  return (process.env["PATH"] ?? "").split(":").some((entry) => entry === folder);
}

/** @returns null if it does not exist; the path itself for a file. */
function targetOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? null : path;
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
