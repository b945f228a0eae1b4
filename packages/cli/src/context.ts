import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Environment } from "./config.ts";
import type { LoadControlPlane } from "./platform/control-plane.ts";
import type { OpenBrowser } from "./sign-in/browser.ts";
import type { Logins } from "./sign-in/logins.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** External dependencies of the commands. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly env: Environment;
  readonly logins: Logins;
  readonly openBrowser: OpenBrowser;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly loadControlPlane: LoadControlPlane;
  readonly version: string;
  /** The commit of this build. */
  readonly commit: string;
}
