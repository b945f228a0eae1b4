import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Looks for values that nobody may keep in plain text. */

/** Every file below a folder, by its path. The store may have a value in its journal alone, so all is read from a copy of one moment. */
export function readCopy(folder: string): Map<string, string> {
  const copy = mkdtempSync("/dev/shm/fairlead-copy-");
  try {
    cpSync(folder, copy, { recursive: true, filter: (path) => !path.endsWith(".sock") });
    const entries = readdirSync(copy, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = entries.map((entry) => join(entry.parentPath, entry.name));
    return new Map(paths.map((path) => [path, readFileSync(path, "latin1")]));
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** What everybody on the machine may see of running programs. */
export function readProcesses(pids: readonly number[]): Map<string, string> {
  const paths = pids.flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]);
  return new Map(paths.map((path) => [path, readFileSync(path, "latin1")]));
}

/** Also in the encodings that a careless program would use. @returns which value is where */
export function leaksIn(places: ReadonlyMap<string, string>, values: readonly string[]): string[] {
  const encodings = ["utf8", "base64", "base64url", "hex"] as const;
  const forms = values.flatMap((value) => encodings.map((encoding) => Buffer.from(value).toString(encoding)));
  return [...places].flatMap(([place, text]) =>
    forms.filter((form) => text.includes(form)).map((form) => `${form} in ${place}`),
  );
}
