import type { DaemonLog } from "../process/log.ts";

const nothing = (): void => undefined;

export const silentLog: DaemonLog = { debug: nothing, info: nothing, warn: nothing, error: nothing };
