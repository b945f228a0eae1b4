import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { giveToCaller } from "./caller.ts";

/** `quickstart.env` has the settings for clients; `quickstart.state` also has the state for later runs. */

const CLIENT_NAMES = [
  "FAIRLEAD_BASE_URL",
  "FAIRLEAD_MODELS_URL",
  "FAIRLEAD_PROJECT_ID",
  "FAIRLEAD_API_KEY",
  "FAIRLEAD_NODE_ID",
  "FAIRLEAD_MODEL",
  "FAIRLEAD_CONFIG",
] as const;
const STATE_NAMES = [...CLIENT_NAMES, "INSTALLATION_ID"] as const;

export type ClientEnv = Partial<Record<(typeof CLIENT_NAMES)[number], string>>;
export type State = Partial<Record<(typeof STATE_NAMES)[number], string>>;

export function readState(path: string): State {
  const found = existsSync(path) ? parseEnv(readFileSync(path, "utf8")) : {};
  return Object.fromEntries(STATE_NAMES.flatMap((name) => (found[name] ? [[name, found[name]]] : [])));
}

export function writeState(path: string, state: State): void {
  write(path, STATE_NAMES, state);
}

export function writeEnvFile(path: string, env: ClientEnv): void {
  write(path, CLIENT_NAMES, env);
}

/** Written atomically with mode 0600, because it contains a key. */
function write(path: string, names: readonly (keyof State)[], values: State): void {
  const lines = names.flatMap((name) => (values[name] ? [`${name}=${values[name]}\n`] : []));
  const temporary = `${path}.new`;
  writeFileSync(temporary, lines.join(""), { mode: 0o600 });
  chmodSync(temporary, 0o600);
  giveToCaller(temporary);
  renameSync(temporary, path);
}
