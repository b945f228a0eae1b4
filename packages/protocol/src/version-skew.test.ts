import { describe, expect, test } from "vitest";
import type { z } from "zod";
import {
  agreedVersion,
  heartbeatAnswerSchema,
  heartbeatSchema,
  helloAnswerSchema,
  helloSchema,
  nodeEventsSchema,
  observationSchema,
  workerTokenAnswerSchema,
  workerTokenRequestSchema,
} from "./daemon-link.ts";
import {
  enrollAnswerSchema,
  enrollRequestSchema,
  identityTokenRequestSchema,
  identityTokenSchema,
} from "./enrollment.ts";
import { desiredStateSchema, readyRequestSchema } from "./workload.ts";

const key = { kty: "OKP", x: "x".repeat(43) };
const hash = "0".repeat(64);
const ids = { nodeId: "nod_1", projectId: "prj_1", installationId: "ins_1" };
const report = {
  workloadId: "wkl_1",
  workloadType: "WORKLOAD_TYPE_ENGINE",
  ready: false,
  state: "backing-off",
  version: "1",
  image: "example/engine:1",
  imageDigest: `sha256:${hash}`,
  generation: 1,
  models: ["m"],
  startedAt: null,
  restartCount: 1,
  lastExit: { code: 1, reason: "exit code 1", at: "2026-01-01T00:00:00.000Z" },
  message: "",
};
const health = { path: "/health", intervalSeconds: 5, timeoutSeconds: 3, startPeriodSeconds: 60, failureThreshold: 3 };
const workload = {
  workloadId: "wkl_1",
  workloadType: "WORKLOAD_TYPE_ENGINE",
  name: "engine",
  image: "example/engine:1",
  command: ["/engine"],
  args: ["--verbose"],
  env: { LEVEL: "1" },
  port: 8080,
  health: { ...health, probe: "http" },
  volumes: [{ name: "models", mountPath: "/models" }],
  resources: { cpus: 1.5, memoryMb: 512 },
  network: { internet: true },
  models: ["m"],
  versionPath: "/version",
  update: "start-first",
  specHash: hash,
};
const agent = {
  ...workload,
  workloadId: "agt_1",
  workloadType: "WORKLOAD_TYPE_AGENT",
  name: "agent-1",
  health: { ...health, probe: "running" },
  secrets: [{ name: "SLACK_BOT_TOKEN", key: "agt_1.SLACK_BOT_TOKEN", as: "env", version: "v1" }],
  workerToken: true,
  network: {
    internet: false,
    platform: { name: "models.example.org", host: "models.example.org", port: 443, forwarded: true },
  },
};
const daemon = {
  version: "1.3.0",
  request: "node:1",
  files: [{ arch: "x64", path: "/v1/daemon-builds/a.tar.gz", sha256: hash, bytes: 1 }],
  spreadSeconds: 0,
};
const daemonUpdate = { wanted: "1.3.0", state: "downloading", message: "", since: "2026-01-01T00:00:00.000Z" };
const host = {
  operatingSystem: "Debian GNU/Linux 12",
  kernel: "6",
  architecture: "x64",
  hostName: "box",
  cpus: 1,
  memoryMb: 1,
  diskFreeMb: 1,
  dockerVersion: "20",
};

/** Everything that one side reads and the other may have written in a newer release. */
const MESSAGES: readonly (readonly [name: string, schema: z.ZodType, message: object])[] = [
  [
    "the desired state",
    desiredStateSchema,
    { epoch: "epo_1", generation: 1, ...ids, workloads: [workload, agent], daemon },
  ],
  ["the answer to hello", helloAnswerSchema, { protocolVersion: 1, heartbeatSeconds: 10, serverTime: 1 }],
  ["the answer to a heartbeat", heartbeatAnswerSchema, { heartbeatSeconds: 10, serverTime: 1 }],
  ["the answer to enrol", enrollAnswerSchema, { ...ids, identityToken: "jwt", expiresIn: 1 }],
  ["an identity token", identityTokenSchema, { identityToken: "jwt", expiresIn: 1 }],
  ["a request for a token", workerTokenRequestSchema, { workloadId: "agt_1" }],
  ["a token", workerTokenAnswerSchema, { state: "issued", token: "jwt", expiresIn: 3600 }],
  ["the answer that there is no token", workerTokenAnswerSchema, { state: "none" }],
  ["hello", helloSchema, { protocolVersions: [1], daemonVersion: "1", bootId: "b", host }],
  ["a heartbeat", heartbeatSchema, { epoch: "epo_1", generation: 1 }],
  ["an observation", observationSchema, { epoch: "epo_1", generation: 1, workloadReports: [report], daemonUpdate }],
  ["events", nodeEventsSchema, [{ id: "1", at: "t", kind: "k", workloadId: null, message: "m" }]],
  ["ready", readyRequestSchema, { id: "nod_1", workloadReports: [report], operatingSystem: "", workerImageDigest: "" }],
  ["a renewal", identityTokenRequestSchema, { assertion: "jwt" }],
  [
    "enrol",
    enrollRequestSchema,
    {
      signingKey: { ...key, crv: "Ed25519" },
      sealingKey: { ...key, crv: "X25519" },
      proof: "jwt",
      daemonVersion: "1",
      protocolVersions: [1],
      operatingSystem: "",
    },
  ],
];

describe("a field that a newer release adds is ignored at every depth", () => {
  test.each(MESSAGES)("of %s", (_name, schema, message) => {
    expect(schema.parse(message)).toEqual(message);
    expect(schema.parse(withNewFields(message))).toEqual(message);
  });
});

function withNewFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNewFields);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, item]) => [name, name === "env" ? item : withNewFields(item)]);
  return { ...Object.fromEntries(fields), fromTheFuture: { deep: [{ er: true }] } };
}

describe("two sides agree on a protocol version", () => {
  test.each([
    { ours: [1], theirs: [1], agreed: 1 },
    { ours: [1, 2], theirs: [1], agreed: 1 },
    { ours: [1, 2], theirs: [2, 1], agreed: 2 },
    { ours: [1, 2], theirs: [2, 3], agreed: 2 },
    { ours: [2, 3], theirs: [1], agreed: null },
  ])("$ours and $theirs: $agreed", ({ ours, theirs, agreed }) => {
    expect(agreedVersion(ours, theirs)).toBe(agreed);
  });
});

test("an invalid desired daemon version does not keep workloads from running", () => {
  const state = { epoch: "epo_1", generation: 1, ...ids, workloads: [workload] };
  expect(desiredStateSchema.parse({ ...state, daemon: { version: "../.." } })).toEqual({ ...state, daemon: undefined });
});
