import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Logger } from "pino";
import type { ProjectAccess } from "../auth/access.ts";
import type { OpenedHandle } from "../db/opened-handle.ts";
import { UsageRecorder } from "./usage-recorder.ts";
import { UsageService } from "./usage-service.ts";
import { UsageStore } from "./usage-store.ts";

export interface UsageServicesDeps extends Pick<OpenedHandle, "db" | "longReads" | "writeTogether"> {
  readonly access: ProjectAccess;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

export interface UsageServices {
  readonly usage: UsageService;
  readonly usageRecorder: UsageRecorder;
}

export function createUsageServices({ db, longReads, ...deps }: UsageServicesDeps): UsageServices {
  return {
    usage: new UsageService({ ...deps, usage: new UsageStore(longReads) }),
    usageRecorder: new UsageRecorder({ ...deps, usage: new UsageStore(db) }),
  };
}
