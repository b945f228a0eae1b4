import { once } from "node:events";
import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FleetStage } from "../support/fleet-stage.ts";
import { waitFor } from "../support/wait-for.ts";

/** How a server ends that has other things to do: without systemd, by one SIGTERM. */

const BLOCKER = new URL("../fixtures/block-event-loop.mjs", import.meta.url);
const SHUTDOWN_SECONDS = 2;
/** What the server promises, and the time that a busy test machine takes to see it. */
const BOUND_MS = (SHUTDOWN_SECONDS + 5) * 1000 + 3000;
const FOR_GOOD_MS = 600_000;
/** Less than the server takes for the end of its event loop. */
const A_WHILE_MS = 2000;
const SOON_MS = 60_000;

let dir: string;
let order: string;
let stage: FleetStage;
let socket: Socket | null = null;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-stop-"));
  order = join(dir, "order");
  const blocker = new URL(BLOCKER);
  blocker.searchParams.set("order", order);
  stage = await FleetStage.start({
    nodes: 0,
    settings: { server: { shutdownSeconds: SHUTDOWN_SECONDS } },
    execArgv: ["--import", blocker.href],
  });
});
afterEach(async () => {
  socket?.destroy();
  await stage.remove();
  rmSync(dir, { recursive: true });
});

/** Resolves when the server's event loop is blocked. */
async function block(milliseconds: number): Promise<void> {
  writeFileSync(`${order}.new`, String(milliseconds));
  renameSync(`${order}.new`, order);
  await waitFor("the block", SOON_MS, async () => !existsSync(order));
}

/** Opens a request that never ends, which keeps the stop waiting. Resolves when the server has the request. */
async function holdCall(): Promise<void> {
  const { hostname, port } = new URL(stage.platformUrl);
  const call = connect({ host: hostname, port: Number(port) });
  socket = call;
  call.on("error", () => undefined);
  const head = ["POST /v1/projects HTTP/1.1", "Host: x", `Authorization: Bearer ${stage.token}`, "Content-Length: 9"];
  call.write(`${head.join("\r\n")}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\r\n`);
  await once(call, "data");
  call.write("{");
}

const isForced = async (): Promise<void> => {
  await waitFor("the end of the server", BOUND_MS, async () => !stage.server.running);
  expect(stage.server.signal).toBe("SIGKILL");
  expect(stage.server.log).toMatch(/"level":"fatal".*forced/);
};

test("a server whose event loop is blocked ends after SIGTERM and logs that it was forced", async () => {
  await block(FOR_GOOD_MS);
  stage.server.signalStop();
  await isForced();
});

test("a server whose event loop is blocked while it stops ends too", async () => {
  await holdCall();
  stage.server.signalStop();
  await waitFor("the stop to begin", SOON_MS, async () => !(await stage.isReady().catch(() => false)));
  await block(FOR_GOOD_MS);
  await isForced();
});

test("a stopping server serves during its lame-duck period and reports that it is not ready", async () => {
  await stage.remove();
  stage = await FleetStage.start({ nodes: 0, settings: { server: { lameDuckSeconds: 3, shutdownSeconds: 1 } } });
  const { platformUrl, modelsUrl, token } = stage;
  stage.server.signalStop();
  await waitFor("the stop to begin", SOON_MS, async () => (await fetch(`${platformUrl}/readyz`)).status === 503);
  expect((await fetch(`${modelsUrl}/readyz`)).status).toBe(503);
  const projects = await fetch(`${platformUrl}/v1/projects`, { headers: { authorization: `Bearer ${token}` } });
  expect(projects.status).toBe(200);
  await waitFor("the end of the server", BOUND_MS, async () => !stage.server.running);
  expect([stage.server.exitCode, stage.server.signal]).toEqual([0, null]);
});

test("a server that was blocked for a while keeps serving, and its stop is not forced", async () => {
  await block(A_WHILE_MS);
  await waitFor("the server to serve", SOON_MS, () => stage.isReady());
  await stage.server.stop();
  expect([stage.server.exitCode, stage.server.signal]).toEqual([0, null]);
  expect(stage.server.log).not.toContain("forced");
});
