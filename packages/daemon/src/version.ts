import { BUILD } from "@fairlead/protocol/build-info";

/** What this daemon tells the platform of itself. */
export const DAEMON_VERSION: string = BUILD.version;
