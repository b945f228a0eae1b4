import { readFileSync } from "node:fs";
import { trustAlso } from "@fairlead/wire/trust";
import { reasonOf } from "../process/log.ts";
import { DaemonStartError, EXIT } from "../process/start-error.ts";

/** Makes all TLS connections of this process trust the file's authorities. @throws StartError if it cannot be used */
export function trustFile(path: string | null): void {
  if (path === null) return;
  try {
    trustAlso(readFileSync(path, "utf8"));
  } catch (error) {
    throw new DaemonStartError(EXIT.usage, `--ca-file: cannot use ${path}: ${reasonOf(error)}`);
  }
}
