import { setTimeout as delay } from "node:timers/promises";
import { DomainError } from "@fairlead/protocol/errors";
import type { NodeCredentials } from "../access/auth/authenticate.ts";
import type { BoundCounters } from "../telemetry/bounds/bound-counters.ts";
import { CallsInFlight } from "./limits/calls-in-flight.ts";
import { clientAddresses } from "./limits/client-address.ts";
import type { OpenConnections } from "./limits/open-connections.ts";
import type { RateLimit } from "./limits/rate-limit.ts";
import type { Addresses } from "./listening/addresses.ts";
import { listen } from "./listening/listen.ts";
import type { TlsFront } from "./listening/tls-front.ts";
import { createPlatformHost, type PlatformHostOptions } from "./platform-host.ts";
import { divertRequests, type RequestDiversion } from "./upgrades/divert-requests.ts";
import { UpgradeDispatcher, type UpgradeRoute } from "./upgrades/upgrade-dispatcher.ts";
import { UpgradeGuard } from "./upgrades/upgrade-guard.ts";

/** The platform host with upgrades and diverted requests, as one thing that starts and stops. */
export interface Platform {
  listen(): Promise<void>;
  /** `/readyz` returns 503 from now on; everything is served as before. */
  leave(): void;
  /** Accepts nothing new; what runs continues. */
  stop(): void;
  /** Ends upgraded connections, and at the deadline what still runs. */
  cut(): Promise<void>;
}

export interface PlatformOptions extends Omit<PlatformHostOptions, "health"> {
  readonly publicJwks: PlatformHostOptions["health"]["publicJwks"];
  /** Resolves if the store answers. */
  readonly ping: () => Promise<void>;
  readonly nodeCredentials: NodeCredentials;
  readonly upgrades: readonly UpgradeRoute[];
  readonly diversion: RequestDiversion;
  /** Of failed upgrades. */
  readonly failures: RateLimit;
  readonly bounds: BoundCounters;
  readonly addresses: Addresses;
  readonly front: { readonly tls: TlsFront | null; readonly connections: OpenConnections };
  readonly deadline: { begin(): void; leftMs(): number };
  /** Ends streams that would run on for as long as they are read. */
  readonly stopStreams: () => void;
  /** Ends the connections of daemons. */
  readonly cutDaemons: () => Promise<void>;
}

const PLATFORM_HEADERS_MS = 30_000;
/** How long a body of the platform host's own routes may take; they are small. */
const PLATFORM_BODY_MS = 30_000;

export function createPlatform(options: PlatformOptions): Platform {
  const { log, ids, bounds, front, deadline, diversion, nodeCredentials: credentials, failures } = options;
  let leaving = false;
  let closed: Promise<void> | null = null;
  const ready = async (): Promise<void> => {
    if (leaving || closed) throw new DomainError("unavailable", "The server is stopping.");
    await options.ping();
  };
  const app = createPlatformHost({ ...options, health: { publicJwks: options.publicJwks, ready } });
  const upgrades = new UpgradeDispatcher({
    routes: options.upgrades,
    credentials,
    guard: new UpgradeGuard({ failures, clientOf: clientAddresses(options.trustedProxies ?? []), bounds }),
    onKnown: (socket) => front.connections.settle(socket),
    ids,
    log,
  });
  divertRequests(app.server, diversion, { headersMs: PLATFORM_HEADERS_MS, bodyMs: PLATFORM_BODY_MS });
  const calls = new CallsInFlight(app.server);
  return {
    listen: async () => {
      await app.ready();
      upgrades.attach(app.server);
      await listen(app.server, options.addresses.platform, front);
    },
    leave: () => {
      leaving = true;
    },
    stop: () => {
      deadline.begin();
      options.stopStreams();
      upgrades.stop();
      closed = app.close();
    },
    cut: async () => {
      await options.cutDaemons();
      upgrades.close();
      await Promise.race([calls.whenIdle(), delay(deadline.leftMs(), undefined, { ref: false })]);
      app.server.closeAllConnections();
      await closed;
    },
  };
}
