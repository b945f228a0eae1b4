import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { createLog } from "../process/log.ts";
import { joinStore, type ServerMembership } from "./membership.ts";

/** Where a server keeps its data. */
export interface ServerPlace {
  readonly dataDir: string;
  readonly database: { readonly url?: string | undefined };
}

/**
 * The place of a server, for an operator's command; a server that runs is not waited for. The caller holds the data folder's lock.
 * @throws StartError while a server runs elsewhere on the same database
 */
export function joinForNow({ dataDir, database }: ServerPlace): Promise<ServerMembership> {
  const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()), log: createLog({ level: "silent" }) };
  return joinStore({ ...ports, dataDir, url: database.url, patienceMs: 0 });
}
