import { chmodSync, chownSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseEnv } from "node:util";

/** `quickstart.env`: what clients need, and all that a second run has to know of the first. */

const NAMES = [
  "FAIRLEAD_BASE_URL",
  "FAIRLEAD_MODELS_URL",
  "FAIRLEAD_TOKEN",
  "FAIRLEAD_PROJECT_ID",
  "FAIRLEAD_API_KEY",
  "FAIRLEAD_NODE_ID",
  "FAIRLEAD_MODEL",
] as const;

export type ClientEnv = Partial<Record<(typeof NAMES)[number], string>>;

export function readEnvFile(path: string): ClientEnv {
  const found = existsSync(path) ? parseEnv(readFileSync(path, "utf8")) : {};
  return Object.fromEntries(NAMES.flatMap((name) => (found[name] ? [[name, found[name]]] : [])));
}

/** Whole or not at all, and never readable by others: it holds a token and a key. */
export function writeEnvFile(path: string, env: ClientEnv): void {
  const lines = NAMES.flatMap((name) => (env[name] ? [`${name}=${env[name]}\n`] : []));
  const temporary = `${path}.new`;
  writeFileSync(temporary, lines.join(""), { mode: 0o600 });
  chmodSync(temporary, 0o600);
  giveToCaller(temporary);
  renameSync(temporary, path);
}

/** Under sudo the file is for the person who typed the command. */
function giveToCaller(path: string): void {
  const { SUDO_UID: user, SUDO_GID: group } = process.env;
  if (process.getuid?.() === 0 && user && group) chownSync(path, Number(user), Number(group));
}
