import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { listen } from "../http/listening/listen.ts";
import { type RunningServer, startServer } from "../server.ts";
import { openLocalAdmin } from "./admin/local-admin.ts";
import { type Config, loadConfig } from "./config/config.ts";

const projectAnswer = z.object({ project: z.object({ id: z.string(), name: z.string() }) });
const keyAnswer = z.object({ key: z.object({ keyValue: z.string(), keyId: z.string() }) });

let dataDir: string;
let started: RunningServer[];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "fairlead-server-"));
  started = [];
});
afterEach(async () => {
  await Promise.all(started.map((server) => server.close()));
  rmSync(dataDir, { recursive: true });
});

function configOf(env: Record<string, string> = {}): Config {
  return loadConfig({
    env: {
      FAIRLEAD_DATA_DIR: dataDir,
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
      ...env,
    },
  });
}

async function start(env?: Record<string, string>): Promise<RunningServer> {
  const server = await startServer(configOf(env));
  started.push(server);
  return server;
}

async function tokenFor(email: string): Promise<string> {
  const admin = await openLocalAdmin(configOf());
  await admin.createUser({ email, name: email, platformAdmin: false });
  const { token } = await admin.createToken({ email });
  await admin.close();
  return token;
}

async function post<T>(url: string, call: { token: string; body: unknown; answer: z.ZodType<T> }): Promise<T> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${call.token}`, "content-type": "application/json" },
    body: JSON.stringify(call.body),
  });
  expect(response.status).toBe(200);
  return call.answer.parse(await response.json());
}

async function makeKey(server: RunningServer, token: string): Promise<{ projectId: string; key: string }> {
  const { project } = await post(`${server.platformUrl}/v1/projects`, {
    token,
    body: { name: "one" },
    answer: projectAnswer,
  });
  const url = `${server.platformUrl}/v1/projects/${project.id}/keys`;
  const { key } = await post(url, { token, body: { projectId: project.id, name: "k" }, answer: keyAnswer });
  return { projectId: project.id, key: key.keyValue };
}

async function isListening(url: string): Promise<boolean> {
  const { port } = new URL(url);
  const socket = connect({ host: "127.0.0.1", port: Number(port) });
  return new Promise((resolve) => {
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

async function statusOf(url: string, token: string): Promise<number> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  await response.arrayBuffer();
  return response.status;
}

describe("the control plane", () => {
  test("leads a person from the first user to a key that the inference host accepts", async () => {
    const server = await start();
    const token = await tokenFor("ann@example.org");
    const { projectId, key } = await makeKey(server, token);
    expect(await statusOf(`${server.platformUrl}/v1/projects/${projectId}`, token)).toBe(200);
    expect(await statusOf(`${server.inferenceUrl}/v1/models`, key)).toBe(200);
    expect(await statusOf(`${server.platformUrl}/readyz`, "")).toBe(200);
  });

  test("shows a project only to its members", async () => {
    const server = await start();
    const { projectId } = await makeKey(server, await tokenFor("ann@example.org"));
    const stranger = await tokenFor("bob@example.org");
    expect(await statusOf(`${server.platformUrl}/v1/projects/${projectId}`, stranger)).toBe(404);
    const list = await fetch(`${server.platformUrl}/v1/projects`, { headers: { authorization: `Bearer ${stranger}` } });
    expect(await list.json()).toEqual({ projects: [], nextPageToken: "" });
  });

  test("performs a create once per `Idempotency-Key`, and stores no secret for a repeat", async () => {
    const server = await start();
    const token = await tokenFor("ann@example.org");
    const send = async (path: string, body: unknown, key = "k-1"): Promise<[number, string | null, unknown]> => {
      const response = await fetch(`${server.platformUrl}${path}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          "idempotency-key": key,
        },
        body: JSON.stringify(body),
      });
      return [response.status, response.headers.get("idempotency-replayed"), await response.json()];
    };
    const [status, replayed, answer] = await send("/v1/projects", { name: "one" });
    expect([status, replayed]).toEqual([200, null]);
    expect(await send("/v1/projects", { name: "one" })).toEqual([200, "true", answer]);
    expect(await send("/v1/projects", { name: "two" })).toMatchObject([
      409,
      null,
      { error: { code: "idempotency_mismatch", param: "Idempotency-Key" } },
    ]);
    const { project } = projectAnswer.parse(answer);
    const node = { projectId: project.id, planId: "byo", name: "box" };
    const [, , created] = await send("/v1/nodes", node);
    expect(await send("/v1/nodes", node)).toEqual([200, "true", created]);
    const keys = `/v1/projects/${project.id}/keys`;
    const [, , made] = await send(keys, { name: "k" });
    const { key } = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) }).parse(made);
    const [again, , refused] = await send(keys, { name: "k" });
    expect(again).toBe(409);
    expect(refused).toMatchObject({ error: { code: "already_exists", message: expect.stringContaining(key.id) } });
    for (const bad of ["x".repeat(256), "ü"]) {
      expect(await send("/v1/projects", { name: "one" }, bad)).toMatchObject([
        400,
        null,
        { error: { param: "Idempotency-Key" } },
      ]);
    }
  });

  test("rejects a key whose body names a different project than its path", async () => {
    const server = await start();
    const token = await tokenFor("ann@example.org");
    const { projectId } = await makeKey(server, token);
    const response = await fetch(`${server.platformUrl}/v1/projects/${projectId}/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ projectId: "prj_other", name: "k" }),
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "projectId" } });
  });

  test("refers credentials of the other host to that host", async () => {
    const server = await start();
    const token = await tokenFor("ann@example.org");
    const { key } = await makeKey(server, token);
    const onPlatform = await fetch(`${server.platformUrl}/v1/projects`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(onPlatform.status).toBe(401);
    expect(await onPlatform.text()).toContain(server.inferenceUrl);
    const onInference = await fetch(`${server.inferenceUrl}/v1/models`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(onInference.status).toBe(401);
    expect(await onInference.text()).toContain("platform host");
  });

  test("publishes the key that signs its tokens", async () => {
    const server = await start();
    const response = await fetch(`${server.platformUrl}/.well-known/jwks.json`);
    const [header = ""] = (await tokenFor("ann@example.org")).split(".");
    const { kid } = z.object({ kid: z.string() }).parse(JSON.parse(Buffer.from(header, "base64url").toString()));
    expect(await response.json()).toMatchObject({ keys: [{ kid }] });
  });

  test("accepts tokens, keys and projects from before a restart", async () => {
    const first = await start();
    const token = await tokenFor("ann@example.org");
    const { projectId, key } = await makeKey(first, token);
    await first.close();
    const second = await start();
    expect(await statusOf(`${second.platformUrl}/v1/projects/${projectId}`, token)).toBe(200);
    expect(await statusOf(`${second.inferenceUrl}/v1/models`, key)).toBe(200);
  });
});

describe("the start", () => {
  test("is refused while another server holds the data folder, and that server keeps running", async () => {
    const first = await start();
    await expect(startServer(configOf())).rejects.toThrow(`Another server is using the data folder ${dataDir}`);
    expect(await statusOf(`${first.platformUrl}/healthz`, "")).toBe(200);
    await first.close();
    await start();
  });

  test.each(["platform", "inference"])(
    "is refused when the %s host's port is in use, and releases everything",
    async (host) => {
      const other = createServer();
      await listen(other, { host: "127.0.0.1", port: 0, setting: "x" });
      const address = other.address();
      const port = String(typeof address === "object" && address ? address.port : 0);
      const env = { [`FAIRLEAD_SERVER_${host.toUpperCase()}_PORT`]: port };
      await expect(startServer(configOf(env))).rejects.toThrow(
        `Port 127.0.0.1:${port} is already in use. Stop the program that uses it, or set server.${host}.port to a free port.`,
      );
      other.close();
      await once(other, "close");
      await start(env);
    },
  );

  test("is refused when the master key is missing, since a new one could open nothing", async () => {
    await (await start()).close();
    rmSync(join(dataDir, "master.key"));
    await expect(startServer(configOf())).rejects.toThrow(/master key cannot be read/);
  });
});

describe("the stop", () => {
  interface SlowCall {
    finish(): void;
    readonly status: Promise<number>;
  }

  /** A call whose body is half sent: it runs until `finish`. */
  async function slowCall(url: string, token: string, body: string): Promise<SlowCall> {
    const call = request(url, {
      method: "POST",
      agent: false,
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        "content-length": body.length,
        expect: "100-continue",
      },
    });
    const status = new Promise<number>((resolve, reject) => {
      call.on("error", reject);
      call.on("response", (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
      });
    });
    // The server has taken the call once it says to go on.
    call.flushHeaders();
    await once(call, "continue");
    call.write(body.slice(0, 5));
    return { status, finish: () => call.end(body.slice(5)) };
  }

  test("lets running calls on both hosts finish, loses no write, and admits nothing new", async () => {
    const server = await start();
    const token = await tokenFor("ann@example.org");
    const { key } = await makeKey(server, token);
    const write = await slowCall(`${server.platformUrl}/v1/projects`, token, '{"name":"late"}');
    const chat = '{"model":"node/model","messages":[]}';
    const inference = await slowCall(`${server.inferenceUrl}/v1/chat/completions`, key, chat);
    const closed = server.close();
    await expect.poll(() => isListening(server.platformUrl)).toBe(false);
    await expect.poll(() => isListening(server.inferenceUrl)).toBe(false);
    inference.finish();
    write.finish();
    expect(await inference.status).toBe(404);
    expect(await write.status).toBe(200);
    await closed;

    const again = await start();
    const list = await fetch(`${again.platformUrl}/v1/projects`, { headers: { authorization: `Bearer ${token}` } });
    expect(await list.json()).toMatchObject({ projects: [{ name: "one" }, { name: "late" }] });
  });

  test("does not wait for calls beyond the deadline", async () => {
    const server = await start({ FAIRLEAD_SERVER_SHUTDOWN_SECONDS: "0" });
    const token = await tokenFor("ann@example.org");
    const stuck = await slowCall(`${server.platformUrl}/v1/projects`, token, '{"name":"late"}');
    const cut = expect(stuck.status).rejects.toThrow();
    await server.close();
    await cut;
  });

  test("does not wait for idle sockets, such as those that browsers and port checks hold open", async () => {
    const server = await start({ FAIRLEAD_SERVER_SHUTDOWN_SECONDS: "3600" });
    const silent = [server.platformUrl, server.inferenceUrl].map((url) =>
      connect(Number(new URL(url).port), "127.0.0.1"),
    );
    await Promise.all(silent.map((socket) => once(socket, "connect")));
    const ended = silent.map((socket) => once(socket, "close"));
    await server.close();
    await Promise.all(ended);
  });

  test("may be requested twice", async () => {
    const server = await start();
    await Promise.all([server.close(), server.close()]);
    await server.close();
  });
});
