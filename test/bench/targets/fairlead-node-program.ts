import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Hello, PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import { parseBootstrapToken } from "@fairlead/protocol/enrollment";
import type { DesiredState, WorkloadReport } from "@fairlead/protocol/workload";
import { pino } from "pino";
import { ConnectCheck } from "../../../packages/daemon/src/gateway/connect-check.ts";
import { createGateway } from "../../../packages/daemon/src/gateway/gateway.ts";
import { PlatformKeys, platformKeysSchema } from "../../../packages/daemon/src/gateway/platform-keys.ts";
import { enroll } from "../../../packages/daemon/src/link/enroll.ts";
import { nodeHttpClient } from "../../../packages/daemon/src/link/http-client.ts";
import { startLink } from "../../../packages/daemon/src/link/link-loop.ts";
import { generateNodeKeys } from "../../../packages/daemon/src/link/node-keys.ts";
import { ServerClock } from "../../../packages/daemon/src/link/server-clock.ts";
import { createTrpcLink } from "../../../packages/daemon/src/link/trpc-link.ts";
import { weighBuffersWithBallast } from "../../../packages/daemon/src/process/garbage-collection.ts";
import { systemTimers } from "../../../packages/daemon/src/process/timers.ts";
import { DurableRecord } from "../../../packages/daemon/src/state/durable-record.ts";
import { diskFiles } from "../../../packages/daemon/src/state/files.ts";
import { IdentityStore } from "../../../packages/daemon/src/state/identity-store.ts";
import { startTunnel } from "../../../packages/daemon/src/tunnel/tunnel-client.ts";
import { systemClock } from "../../../packages/protocol/src/values/clock.ts";

/**
 * `fairlead-node-program.ts MOCK_PORT FOLDER`: the daemon without containers. Enrols with the token in the folder, says
 * that every workload runs, and forwards what comes through the tunnel to the mock upstream.
 */

weighBuffersWithBallast();
const [, , mockPort, folder = ""] = process.argv;
const log = pino({ level: "info" });
const random = Math.random;
const serverClock = new ServerClock(systemClock);
const operatingSystem = "bench";
const CALL_MS = 10_000;

/** @returns what this node needs to call as itself. The token outlives a bench. */
async function enrolHere(): Promise<{
  platformUrl: string;
  nodeId: string;
  installationId: string;
  token: () => Promise<string>;
}> {
  const token = readFileSync(join(folder, "bootstrap-token"), "utf8").trim();
  const bootstrap = parseBootstrapToken(token);
  if (bootstrap === null) throw new Error("this is not a bootstrap token");
  const { url: platformUrl, nodeId } = bootstrap;
  const store = new IdentityStore(diskFiles, folder);
  const deps = { http: nodeHttpClient, store, serverClock, timers: systemTimers, random, log };
  const identity = { platformUrl, nodeId, keys: await generateNodeKeys(), enrolled: null };
  const { answer } = await enroll(deps, { identity, token, operatingSystem, signal: new AbortController().signal });
  const { identityToken, installationId } = answer;
  return { platformUrl, nodeId, installationId, token: () => Promise.resolve(identityToken) };
}

const engineImage = `sha256:${"0".repeat(64)}`;

/** Reports to the ready endpoint (docs/interface.md §4.4): the one call that makes a node active. */
async function reportReady({ generation, workloads }: DesiredState): Promise<void> {
  const workloadReports: WorkloadReport[] = workloads.map(({ workloadId, workloadType, image }) => ({
    workloadId,
    workloadType,
    ready: true,
    state: "running",
    version: "1",
    image,
    imageDigest: engineImage,
    generation,
    models: ["mock-model"],
    startedAt: null,
    restartCount: 0,
    lastExit: null,
    message: "",
  }));
  await nodeHttpClient({
    method: "POST",
    url: `${node.platformUrl}/v1/nodes/${node.nodeId}/ready`,
    bearer: await node.token(),
    body: { id: node.nodeId, workloadReports, operatingSystem, workerImageDigest: engineImage },
    timeoutMs: CALL_MS,
  });
}

function hello(): Promise<Hello> {
  const host = { operatingSystem, kernel: "", architecture: process.arch, hostName: "bench", dockerVersion: "" };
  const size = { cpus: 1, memoryMb: 1024, diskFreeMb: 1024 };
  const versions = { protocolVersions: [...PROTOCOL_VERSIONS], daemonVersion: "bench", bootId: randomUUID() };
  return Promise.resolve({ ...versions, host: { ...host, ...size } });
}

const node = await enrolHere();
let held = { epoch: "", generation: 0 };
startLink({
  control: createTrpcLink({ ...node, onTokenRefused: () => undefined, log }),
  serverClock,
  timers: systemTimers,
  random,
  log,
  hello,
  held: () => held,
  onState: (state) => {
    held = { epoch: state.epoch, generation: state.generation };
    reportReady(state).catch((error: unknown) => log.error({ err: error }, "cannot report"));
  },
  onLive: () => undefined,
  onDown: () => undefined,
});
const record = new DurableRecord(diskFiles, join(folder, "platform-keys.json"), platformKeysSchema);
const { platformUrl } = node;
const keys = new PlatformKeys({
  platformUrl,
  http: nodeHttpClient,
  record,
  clock: systemClock,
  timers: systemTimers,
  log,
});
const connect = new ConnectCheck({ ...node, keys, now: () => serverClock.now() });
const target = { host: "127.0.0.1", port: Number(mockPort), ready: true };
const handler = createGateway({
  targets: { find: () => target },
  connect,
  log,
});
startTunnel({ ...node, handler, clock: systemClock, random, log });
// A profile is written at the end of the program, and a signal alone would not be one.
process.once("SIGTERM", () => process.exit(0));
