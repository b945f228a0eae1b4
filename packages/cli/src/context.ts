import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Environment } from "./config.ts";
import type { LoadControlPlane } from "./control-plane.ts";
import type { OpenBrowser } from "./sign-in/browser.ts";
import type { Logins } from "./sign-in/logins.ts";
import type { Terminal } from "./terminal.ts";

/** All that the commands need from outside. */
export interface Context {
  readonly terminal: Terminal;
  readonly env: Environment;
  readonly logins: Logins;
  readonly openBrowser: OpenBrowser;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly loadControlPlane: LoadControlPlane;
  readonly version: string;
  /** That this program was built of. */
  readonly commit: string;
}
