import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { formatBootstrapToken } from "@fairlead/protocol/enrollment";
import { NO_PROXIES } from "@fairlead/wire/proxy/proxy-rules";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runDaemon } from "./daemon.ts";
import { generateNodeKeys } from "./link/node-keys.ts";
import type { DaemonConfig } from "./process/config.ts";
import { EXIT } from "./process/start-error.ts";
import type { Container } from "./runtime/container-runtime.ts";
import { DockerRuntime } from "./runtime/docker/docker-runtime.ts";
import { DesiredStore } from "./state/desired-store.ts";
import { diskFiles } from "./state/files.ts";
import { IdentityStore } from "./state/identity-store.ts";
import { aDesiredState, aSpec } from "./testing/builders.ts";
import { DOCKER_SOCKET, dockerCorner, removeAllOf, whyNoDocker } from "./testing/docker-engine.ts";

const reason = await whyNoDocker();

/** A platform host that enrols nodes but rejects the link and the tunnel. */
let folder = "";
let server: Server;
let url = "";
let requests: { path: string; body: string; authorization: string | undefined }[] = [];
let answer: (path: string) => { status: number; body: unknown };
/** Delays responses until resolved. */
let gate: Promise<void>;
let closing: AbortController;
const ids = { nodeId: "nod_1", projectId: "prj_1", installationId: "ins_1" };
const enrolled = { status: 200, body: { ...ids, identityToken: "jwt", expiresIn: 3600 } };
const refused = (code: string) => ({ status: 401, body: { error: { code, message: "no longer known" } } });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-daemon-"));
  requests = [];
  closing = new AbortController();
  answer = () => enrolled;
  gate = Promise.resolve();
  server = createServer((request: IncomingMessage, response) => {
    void text(request).then(async (body) => {
      await gate;
      const path = request.url ?? "";
      requests.push({ path, body, authorization: request.headers.authorization });
      const { status, body: json } = answer(path);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
    });
  });
  server.on("upgrade", (_, socket) => {
    // A stopping daemon resets the connection.
    socket.on("error", () => undefined);
    socket.end("HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  closing.abort();
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

const config = (changes: Partial<DaemonConfig> = {}): DaemonConfig => ({
  stateDir: join(folder, "state"),
  runtimeDir: join(folder, "run"),
  bootstrapTokenFile: join(folder, "token"),
  dockerSocket: join(folder, "no-engine.sock"),
  workloadSubnets: "198.19.0.0/16",
  logLevel: "error",
  insecure: false,
  caFile: null,
  proxies: NO_PROXIES,
  trialSeconds: 300,
  serviceManager: { listens: false, watchdogMs: null },
  ...changes,
});
const run = (changes: Partial<DaemonConfig> = {}) =>
  runDaemon(config(changes), { log: pino({ level: "silent" }), signal: closing.signal });
const giveToken = (at = url): Promise<void> =>
  writeFile(join(folder, "token"), `${formatBootstrapToken({ url: at, nodeId: "nod_1", secret: "s".repeat(32) })}\n`);
const pathsSeen = (): string[] => requests.map((request) => request.path);

test("a first start enrols, keeps the identity private, and exits with 0 when it is stopped", async () => {
  await giveToken();
  const ended = run();
  const file = join(folder, "state/identity.json");
  await vi.waitFor(
    async () => expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ enrolled: { projectId: "prj_1" } }),
    { timeout: 30_000 },
  );
  expect(pathsSeen()[0]).toBe("/v1/nodes/nod_1/enroll");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  closing.abort();
  expect(await ended).toBe(EXIT.ok);
});

test("a platform URL with a path is called below that path", async () => {
  await giveToken(`${url}/fairlead`);
  const ended = run();
  await vi.waitFor(() => expect(pathsSeen()).toContain("/fairlead/v1/nodes/nod_1/enroll"), { timeout: 30_000 });
  expect(pathsSeen().filter((path) => !path.startsWith("/fairlead/"))).toEqual([]);
  closing.abort();
  expect(await ended).toBe(EXIT.ok);
});

test("without a token file or an identity, the daemon says what to do", async () => {
  await expect(run()).rejects.toMatchObject({ exitCode: EXIT.usage });
});

test("a permanently rejected token ends the daemon with the exit code that systemd does not restart", async () => {
  await giveToken();
  answer = () => refused("invalid_credential");
  await expect(run()).rejects.toMatchObject({ exitCode: EXIT.refused });
});

test("a second daemon on the same folder does not start", async () => {
  await giveToken();
  const ended = run();
  await vi.waitFor(() => expect(pathsSeen()).not.toEqual([]));
  await expect(run()).rejects.toMatchObject({ exitCode: EXIT.locked });
  closing.abort();
  await ended;
});

describe("an enrolled node", () => {
  const enroll = async (platformUrl: string, nodeId = "nod_1"): Promise<void> => {
    const state = config().stateDir;
    await diskFiles.makeFolder(state);
    await new IdentityStore(diskFiles, state).save({
      platformUrl,
      nodeId,
      keys: await generateNodeKeys(),
      enrolled: { projectId: "prj_1", installationId: "ins_1", bootstrapTokenSha256: "" },
    });
  };

  test("that the platform disowns exits with the code that systemd does not restart", async () => {
    await enroll(url);
    answer = () => refused("invalid_credential");
    expect(await run()).toBe(EXIT.refused);
    expect(new Set(pathsSeen())).toEqual(new Set(["/v1/nodes/nod_1/identity-tokens"]));
  });

  test("with an invalid token continues with its existing identity", async () => {
    await enroll(url);
    await giveToken();
    answer = (path) => (path.endsWith("/enroll") ? refused("bootstrap_token_used") : enrolled);
    const ended = run();
    await vi.waitFor(() => expect(pathsSeen()).toContain("/v1/nodes/nod_1/identity-tokens"));
    closing.abort();
    expect(await ended).toBe(EXIT.ok);
  });

  /** An enrolled node with an engine on the real container engine. */
  const whileRunning = async (platformUrl: string, check: (running: RunningNode) => Promise<void>): Promise<void> => {
    const nodeId = `nod_${randomBytes(6).toString("hex")}`;
    const owner = { installationId: "ins_1", nodeId };
    const corner = await dockerCorner("daemon");
    const runtime = new DockerRuntime(DOCKER_SOCKET);
    try {
      await enroll(platformUrl, nodeId);
      const desired = new DesiredStore(diskFiles, { folder: config().stateDir, nodeId });
      desired.offer(aDesiredState({ ...owner, workloads: [aSpec({ image: corner.image })] }));
      await desired.save();
      const ended = run({ dockerSocket: DOCKER_SOCKET });
      await vi.waitFor(async () => expect(await runtime.list(owner)).toMatchObject([{ state: "running" }]), 20_000);
      await check({ ended, containers: () => runtime.list(owner) });
    } finally {
      await removeAllOf(corner.docker, nodeId);
      await corner.close();
    }
  };
  const onDocker = (title: string, body: () => Promise<void>): void => {
    const named = reason === null ? title : `${title} (skipped: ${reason})`;
    test.skipIf(reason !== null)(named, { timeout: 60_000 }, body);
  };

  onDocker("runs its workloads while the control plane is down, and leaves them running when it is stopped", () =>
    // A port without a listener.
    whileRunning("http://127.0.0.1:9", async ({ ended, containers }) => {
      closing.abort();
      expect(await ended).toBe(EXIT.ok);
      expect(await containers()).toMatchObject([{ state: "running" }]);
    }),
  );

  onDocker("leaves its workloads running when the platform disowns it without reporting a deletion", async () => {
    const word = Promise.withResolvers<void>();
    answer = () => refused("invalid_credential");
    gate = word.promise;
    await whileRunning(url, async ({ ended, containers }) => {
      word.resolve();
      expect(await ended).toBe(EXIT.refused);
      expect(await containers()).toMatchObject([{ state: "running" }]);
    });
  });

  onDocker("removes its workloads when it was deleted, and exits permanently", async () => {
    const word = Promise.withResolvers<void>();
    answer = () => refused("node_deleted");
    gate = word.promise;
    await whileRunning(url, async ({ ended, containers }) => {
      word.resolve();
      expect(await ended).toBe(EXIT.refused);
      expect(await containers()).toEqual([]);
    });
    // After a manual restart it starts no workloads.
    const { nodeId } = JSON.parse(await readFile(join(config().stateDir, "identity.json"), "utf8")) as {
      nodeId: string;
    };
    const kept = new DesiredStore(diskFiles, { folder: config().stateDir, nodeId });
    await kept.load();
    expect(kept.current()?.workloads).toEqual([]);
  });
});

interface RunningNode {
  readonly ended: Promise<number>;
  readonly containers: () => Promise<Container[]>;
}
