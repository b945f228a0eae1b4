import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { openRepeats } from "../access/repeats-room.ts";
import { openFront } from "../http/http-room.ts";
import { createRateLimits } from "../http/limits/rate-limits.ts";
import { openProjects } from "../people/projects/project-room.ts";
import type { Ground, Opened } from "../room.ts";
import { BoundCounters } from "../telemetry/bounds/bound-counters.ts";
import { removeSnapshots } from "./backup/snapshot.ts";
import { joinStore, SERVER_PATIENCE_MS } from "./cluster/membership.ts";
import type { Config } from "./config/config.ts";
import { holdDataDir } from "./db/data-dir.ts";
import { StatementWatch } from "./db/statement-watch.ts";
import { openInstallation } from "./installation-room.ts";
import { trustAuthorities } from "./outgoing/trust-authorities.ts";
import type { Log } from "./process/log.ts";
import { StopDeadline } from "./stop/stop-deadline.ts";

/** Makes this server the only one on its data folder and its store, and opens what all rooms need. @throws StartError */
export async function openGround(config: Config, log: Log, opened: Opened) {
  trustAuthorities(config.proxy);
  const { dataDir, database } = config;
  const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
  const lock = await holdDataDir(dataDir);
  opened.add(() => lock.release());
  const membership = await joinStore({ ...ports, dataDir, url: database.url, log, patienceMs: SERVER_PATIENCE_MS });
  opened.add(() => membership.leave());
  await removeSnapshots(dataDir);
  const base = { ...ports, config, log, bounds: new BoundCounters() };
  const front = await openFront(base, opened);
  const { publicUrl, modelsUrl } = front.addresses;
  const statements = new StatementWatch(base);
  const watched = { publicUrl, membership, onStatement: statements.observe };
  const installation = opened.room(await openInstallation(config, { ...base, ...watched }));
  const people = openProjects({ ...ports, ...installation });
  const repeats = openRepeats({ ...ports, installation });
  const { projects } = people;
  const { idempotency } = repeats;
  const limits = createRateLimits(config.rateLimits);
  const ground: Ground = { ...base, installation, publicUrl, modelsUrl, limits, projects, idempotency };
  const deadline = new StopDeadline(systemClock, config.server.shutdownSeconds * 1000);
  return { ...people, ground, repeats, membership, front, statements, deadline, requests: new RequestTally() };
}
