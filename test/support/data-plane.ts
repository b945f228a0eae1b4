import { createServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { DomainError } from "@fairlead/protocol/errors";
import { pino } from "pino";
import { TunnelHub } from "../../packages/control-plane/src/fleet/tunnel/tunnel-hub.ts";
import { nodesCatalog } from "../../packages/control-plane/src/models/catalog/model-catalog.fixture.ts";
import type { ProviderModel } from "../../packages/control-plane/src/models/providers/provider.ts";
import { BoundCounters } from "../../packages/control-plane/src/telemetry/bounds/bound-counters.ts";
import { createGateway } from "../../packages/daemon/src/gateway/gateway.ts";
import { startTunnel, type Tunnel } from "../../packages/daemon/src/tunnel/tunnel-client.ts";
import type { CallBilling } from "../../packages/inference/src/calls/call-money.ts";
import type { ModelCatalog } from "../../packages/inference/src/calls/model-catalog.ts";
import { createInferenceHost, type InferenceHost } from "../../packages/inference/src/host/inference-host.ts";
import type { InferenceLimits } from "../../packages/inference/src/host/limits.ts";
import type { InferenceCaller } from "../../packages/inference/src/ports/inference-caller.ts";
import type { EngineTarget } from "../../packages/inference/src/ports/ports.ts";
import { asKey } from "../../packages/inference/src/testing/callers.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { systemIds } from "../../packages/protocol/src/values/ids.ts";
import { FaultyLink } from "./faulty-link.ts";
import { ScriptedEngine } from "./scripted-engine.ts";
import { waitFor } from "./wait-for.ts";

export const PROJECT_KEY = "flk_0123456789_secret";
export const NODE_ID = "nod_00000000000000000000000001";
const WORKLOAD = "engine";
const LIVENESS = { pingIntervalMs: 100, pingTimeoutMs: 1000 };

interface PlatformTls {
  readonly key: string;
  readonly cert: string;
}

export interface DataPlaneOptions {
  readonly limits?: Partial<InferenceLimits>;
  /** Makes the platform host an https one, with this certificate as its own authority. */
  readonly tls?: PlatformTls;
  /** Of a real engine on this machine, in place of the scripted one. */
  readonly enginePort?: number;
  /** What the inference host is told of the models, instead of what the node's engine serves. */
  readonly models?: (engines: ModelCatalog) => ModelCatalog;
  /** What is known of the models that nodes serve. */
  readonly nodeModels?: readonly ProviderModel[];
  /** Else nobody asks for money. */
  readonly billing?: CallBilling;
}

const asTheyAre = (engines: ModelCatalog): ModelCatalog => engines;

/** Inference host ⇄ hub ⇄ tunnel ⇄ gateway ⇄ a scripted engine, in one process, over real sockets. */
export class DataPlane {
  readonly engine = new ScriptedEngine();
  readonly hub: TunnelHub;
  readonly host: InferenceHost;
  /** The network between the node and the platform host. */
  readonly link = new FaultyLink();
  /** How many tunnels the node has opened. */
  tunnelsOpened = 0;
  /** What the directory tells of the node. */
  target: EngineTarget = {
    nodeId: NODE_ID,
    identifier: "node-1",
    workload: WORKLOAD,
    absence: null,
    models: ["tiny", "org/large"],
    since: 1_700_000_000_000,
    protocols: ["chat"],
    chat: {},
  };
  tunnel: Tunnel | undefined;
  #enginePort = 0;
  readonly #realPort: number | undefined;
  readonly #platform: Server;
  readonly #tls: PlatformTls | undefined;
  readonly #log = pino({ level: "silent" });

  constructor(options: DataPlaneOptions = {}) {
    this.#tls = options.tls;
    this.#realPort = options.enginePort;
    this.hub = new TunnelHub({ log: this.#log, clock: systemClock, bounds: new BoundCounters(), liveness: LIVENESS });
    this.#platform = options.tls === undefined ? createServer() : createHttpsServer(options.tls);
    this.#platform.on("upgrade", (_request, socket, head) => {
      this.tunnelsOpened++;
      this.hub.attach(NODE_ID, { socket, head });
    });
    this.host = createInferenceHost({
      callers: { authenticate: (secret) => authenticate(secret) },
      models: (options.models ?? asTheyAre)(nodesCatalog(() => [this.target], this.hub, options.nodeModels)),
      ...(options.billing === undefined ? {} : { billing: options.billing }),
      ids: systemIds(() => Date.now()),
      clock: systemClock,
      log: this.#log,
      limits: { sweepMs: 20, ...options.limits },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${portOf(this.host.server)}`;
  }

  async start(): Promise<void> {
    this.#enginePort = this.#realPort ?? (await this.engine.start());
    await listen(this.#platform);
    await listen(this.host.server);
    await this.link.start(portOf(this.#platform));
    await this.connect();
  }

  /** Opens the node's tunnel and waits until the hub has it. */
  async connect(): Promise<void> {
    this.tunnel = startTunnel({
      platformUrl: `${this.#tls === undefined ? "http" : "https"}://127.0.0.1:${this.link.port}`,
      ...(this.#tls === undefined ? {} : { certificateAuthority: this.#tls.cert }),
      nodeId: NODE_ID,
      token: () => Promise.resolve("node-token"),
      handler: createGateway({
        targets: {
          find: (name) => (name === WORKLOAD ? { host: "127.0.0.1", port: this.#enginePort, ready: true } : null),
        },
        connect: { check: () => Promise.reject(new Error("nothing is relayed here")) },
        log: this.#log,
      }),
      clock: systemClock,
      random: Math.random,
      log: this.#log,
      timing: { ...LIVENESS, backoff: { baseMs: 20, maxMs: 100 } },
    });
    await waitFor("the tunnel", 10_000, () => Promise.resolve(this.hub.get(NODE_ID) !== null));
  }

  async stop(): Promise<void> {
    await this.tunnel?.close();
    await this.host.drain(0);
    this.hub.close();
    await this.link.stop();
    this.#platform.closeAllConnections();
    this.#platform.close();
    await this.engine.stop();
  }
}

function authenticate(secret: string): Promise<InferenceCaller> {
  if (secret === PROJECT_KEY) return Promise.resolve(asKey("prj_1"));
  return Promise.reject(new DomainError("invalid_credential", "This key is unknown or revoked."));
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
