import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { createGateway } from "../../packages/daemon/src/gateway/gateway.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { bearer, type Call, call } from "./call.ts";
import { countingUpstream } from "./counting-upstream.ts";
import { type Facts, HONEST_MODEL, NODE_MODEL, type StageNode } from "./facts.ts";
import { tellParent } from "./helper.ts";
import { reconnectOnce } from "./reconnect.ts";

/** The honest client: what it does must never fail, whatever others do meanwhile. */

export interface HonestReport {
  readonly ready: boolean;
  /** Operations that succeeded, by their name. */
  readonly succeeded: Readonly<Record<string, number>>;
  /** Reasons, as they came; no more than the first hundred are kept. */
  readonly failures: readonly string[];
}

/** Nobody else calls from it: what counts failures by address must not count others' for it. */
const ADDRESS = "127.0.0.2";
/** Not a measure of speed: what takes longer than this has failed for whoever waits. */
const DEADLINE_MS = 15_000;
/** As often as a node may: one link in two seconds. */
const RECONNECT_MS = 2500;
const REPORT_MS = 200;
const KEPT_FAILURES = 100;
/** As the larger requests of real callers. */
const LARGE_TEXT = "words ".repeat(17_000);

const succeeded: Record<string, number> = {};
const failures: string[] = [];
let ready = false;

process.once("message", (facts: Facts) => void run(facts));
process.once("disconnect", () => process.exit());
setInterval(() => tellParent({ ready, succeeded, failures } satisfies HonestReport), REPORT_MS);

async function run(facts: Facts): Promise<void> {
  const engine = new ScriptedEngine();
  engine.script = countingUpstream;
  const upstream = new ScriptedEngine();
  upstream.script = countingUpstream;
  const port = await engine.start();
  await new Promise<void>((resolve) => upstream.server.listen(facts.ports.honest, "127.0.0.1", resolve));
  const targets = { find: () => ({ host: "127.0.0.1", port, ready: true }) };
  const connect = { check: () => Promise.reject(new Error("nothing is relayed here")) };
  const handler = createGateway({ targets, connect, log: pino({ level: "silent" }) });
  const daemon = new SimulatedDaemon(facts.honest.node, { tunnel: true, handler });
  while (!daemon.isLive || !daemon.hasTunnel || (await nodeCall(facts)) !== "") await sleep(100);
  ready = true;
  void repeat(250, "readyz", () => expect200({ url: facts.platformUrl, path: "/readyz" }));
  void repeat(300, "provider", () => providerCall(facts));
  void repeat(300, "node", () => nodeCall(facts));
  void repeat(500, "chat", () => chatTurn(facts));
  void repeat(500, "api", () => apiCall(facts));
  const elsewhere = await forwarder(facts.platformUrl);
  const [shared, ...others] = facts.honest.reconnecting;
  for (const [n, node] of others.entries()) {
    await sleep(n * 1000);
    const options = { platformUrl: elsewhere, deadlineMs: DEADLINE_MS };
    void repeat(RECONNECT_MS, "reconnect", () => reconnectOnce(node, options));
  }
  if (shared !== undefined) void repeat(RECONNECT_MS, "reconnect beside an attacker", () => reconnect(shared));
}

/** Behind the same address as an attacker, it may be rate limited like every daemon there. */
async function reconnect(node: StageNode): Promise<string> {
  const { platformUrl } = node.identity;
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const why = await reconnectOnce(node, { platformUrl, deadlineMs: DEADLINE_MS });
    if (why === "" || performance.now() > deadline) return why;
    await sleep(1000);
  }
}

/** @returns a URL by which the platform host sees connections come from the honest address. */
async function forwarder(platformUrl: string): Promise<string> {
  const { hostname: host, port } = new URL(platformUrl);
  const server = createServer((near) => {
    const far = connect({ host, port: Number(port), localAddress: ADDRESS });
    near.on("error", () => far.destroy());
    far.on("error", () => near.destroy());
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** @param operation resolves with "" or the reason of its failure. */
async function repeat(pauseMs: number, name: string, operation: () => Promise<string>): Promise<void> {
  for (;;) {
    const why = await operation().catch(String);
    if (why === "") succeeded[name] = (succeeded[name] ?? 0) + 1;
    else if (failures.length < KEPT_FAILURES) failures.push(`${name}: ${why.slice(0, 300)}`);
    await sleep(pauseMs);
  }
}

async function expect200(options: Omit<Call, "deadlineMs">, ending = ""): Promise<string> {
  const { status, text } = await call({ localAddress: ADDRESS, deadlineMs: DEADLINE_MS, ...options });
  if (status !== 200) return `${status} ${text}`;
  return text.trimEnd().endsWith(ending) ? "" : `cut off after ${text.length} bytes`;
}

function post(url: string, path: string, { secret, body }: { secret: string; body: object }): Omit<Call, "deadlineMs"> {
  return { url, path, method: "POST", headers: bearer(secret), body: JSON.stringify(body) };
}

function providerCall({ modelsUrl, honest }: Facts): Promise<string> {
  const body = { model: HONEST_MODEL, messages: [{ role: "user", content: LARGE_TEXT }] };
  return expect200(post(modelsUrl, "/v1/chat/completions", { secret: honest.key, body }));
}

function nodeCall({ modelsUrl, honest }: Facts): Promise<string> {
  const model = `${honest.node.identifier}/${NODE_MODEL}`;
  const body = { model, stream: true, messages: [{ role: "user", content: "Hello" }] };
  return expect200(post(modelsUrl, "/v1/chat/completions", { secret: honest.key, body }), "data: [DONE]");
}

function chatTurn({ platformUrl, honest }: Facts): Promise<string> {
  const body = { model: HONEST_MODEL, messages: [{ role: "user", content: "Hello" }] };
  const turn = post(platformUrl, "/v1/chat/responses", { secret: honest.token, body });
  return expect200({ ...turn, headers: { ...turn.headers, "service-project-id": honest.projectId } });
}

function apiCall({ platformUrl, honest }: Facts): Promise<string> {
  const path = `/v1/nodes/${honest.node.id}`;
  return expect200({ url: platformUrl, path, headers: bearer(honest.token) });
}
