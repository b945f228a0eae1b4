import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "@fairlead/protocol/values/clock";
import { openAccess } from "./access/access-room.ts";
import { createCredentials } from "./access/auth/credentials.ts";
import { openChat } from "./chat/chat-room.ts";
import { openFleet } from "./fleet/fleet-room.ts";
import { openGateway } from "./fleet/workload-gateway/gateway-room.ts";
import { openInference, openPlatform } from "./http/http-room.ts";
import { listen } from "./http/listening/listen.ts";
import { linkForFirstStart, openAdmin } from "./installation/admin/admin-room.ts";
import type { Config } from "./installation/config/config.ts";
import { openGround } from "./installation/ground-room.ts";
import { weighBuffersWithHeap } from "./installation/process/garbage-collection.ts";
import { createLog, type Log } from "./installation/process/log.ts";
import { startQuietHeap } from "./installation/process/quiet-heap.ts";
import { tellServiceManager } from "./installation/process/service-manager.ts";
import { stopBoundMs, stopMsOf } from "./installation/stop/stop-watch.ts";
import { openModels } from "./models/models-room.ts";
import { ProjectNames } from "./models/names/project-names.ts";
import { openMoney } from "./money/money-room.ts";
import { openPeople } from "./people/people-room.ts";
import { Opened } from "./room.ts";
import { openTelemetry, openTraces } from "./telemetry/telemetry-room.ts";

/** The composition root, the only file that imports every room. */

export interface RunningServer {
  readonly platformUrl: string;
  readonly inferenceUrl: string;
  /** The setup URL of the first administrator; null once a user exists. */
  readonly setUpUrl: string | null;
  /** Resolves when another server has taken over the database: the process must exit and can no longer write. */
  readonly fenced: Promise<void>;
  /** Stops admitting, waits for running calls until the deadline, then closes everything. Repeated calls wait for the first. */
  close(): Promise<void>;
}

/** @throws StartError when a port is taken, another server holds the data folder, or the store is of a newer version. */
export async function startServer(config: Config): Promise<RunningServer> {
  const opened = new Opened();
  const log = createLog(config.log);
  weighBuffersWithHeap();
  opened.add(startQuietHeap(systemClock, log));
  try {
    const running = await open(config, log, opened);
    const manager = tellServiceManager(config.serviceManager);
    opened.addLast(manager.stopped);
    opened.add(() => manager.stopping(stopBoundMs(stopMsOf(config.server))));
    let closing: Promise<void> | null = null;
    return { ...running, close: () => (closing ??= opened.close()) };
  } catch (error) {
    // The error that failed the start matters more than one from closing.
    await opened.close().catch(() => {});
    throw error;
  }
}

async function open(config: Config, log: Log, opened: Opened): Promise<Omit<RunningServer, "close">> {
  const { ground, repeats, owners, memberships, projectStores, ...server } = await openGround(config, log, opened);
  const { installation } = ground;
  const { membership, front, statements, deadline, requests } = server;
  const names = new ProjectNames(config.providers.platform.map(({ name }) => name));

  const money = opened.room(openMoney(ground));
  const { billing } = money;
  const access = opened.room(openAccess({ ...ground, billing }));
  const fleet = openFleet({ ...ground, names, billing });
  const credentials = createCredentials({ ...ground, ...installation, ...fleet, memberships });
  const gateway = openGateway({ ...ground, fleet, credentials, requests });
  const { models, ...modelsRoom } = opened.room(openModels({ ...ground, names, fleet }));
  const { traces } = opened.room(await openTraces(ground));
  const host = openInference({ ...ground, repeats, access, credentials, money, models, owners, traces });
  const { inference } = host;
  const chat = openChat({ ...ground, models, owners, inference });
  const people = openPeople({ ...ground, access, fleet, chat, projectStores });
  const rooms = [fleet, gateway, people, access, repeats, modelsRoom, money, host, chat];
  const telemetry = openTelemetry({ ...ground, statements, tls: front.tls, requests, inference, rooms });
  const served = { front, deadline, requests, credentials, inference, fleet, relay: gateway.relay };
  const platform = openPlatform({ ...ground, ...served, rooms: [...rooms, telemetry] });

  // Settles what the last stop interrupted, before anything is served.
  for (const { prepare } of [money, chat, people]) await prepare();
  opened.start(rooms, log);
  // In reverse order: the platform host stops listening, calls drain through the tunnels, then the tunnels close.
  opened.add(() => platform.cut());
  opened.room(chat);
  opened.add(() => inference.drain(deadline.leftMs()));
  await listen(inference.server, front.addresses.inference, front);
  await platform.listen();
  opened.add(() => platform.stop());
  opened.room(await openAdmin({ ...ground, money }));
  opened.add(() => standDown([platform, inference.admission], config.server.lameDuckSeconds * 1000));
  const { platformUrl, inferenceUrl } = front.addresses;
  const proxy = config.proxy.rules.https?.url;
  log.info({ platformUrl, inferenceUrl, installationId: installation.record.id, proxy }, "server started");
  return { platformUrl, inferenceUrl, fenced: membership.fenced, setUpUrl: await linkForFirstStart(installation, log) };
}

/** Keeps serving while load balancers see `/readyz` fail. */
async function standDown(hosts: readonly { leave(): void }[], lameDuckMs: number): Promise<void> {
  for (const host of hosts) host.leave();
  if (lameDuckMs > 0) await delay(lameDuckMs);
}
