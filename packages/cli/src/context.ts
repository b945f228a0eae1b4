import type { Environment } from "./config.ts";
import type { LoadControlPlane } from "./control-plane.ts";
import type { Terminal } from "./terminal.ts";

/** All that the commands need from outside. */
export interface Context {
  readonly terminal: Terminal;
  readonly env: Environment;
  readonly loadControlPlane: LoadControlPlane;
  readonly version: string;
}
