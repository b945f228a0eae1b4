import { BUILD } from "@fairlead/protocol/values/build-info";

/** The daemon's version, as reported to the platform. */
export const DAEMON_VERSION: string = BUILD.version;
