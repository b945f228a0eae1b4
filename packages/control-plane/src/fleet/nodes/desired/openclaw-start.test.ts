import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "@fairlead/protocol/testing/free-ports";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { OPENCLAW_START } from "./openclaw-start.ts";

/** Stands in for the package: writes down how it was called, and serves as its gateway does, on loopback. */
const OPENCLAW = `
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { env } from "node:process";
const [, , ...args] = process.argv;
const input = args[0] === "config" ? JSON.parse(readFileSync(0, "utf8")) : null;
appendFileSync("calls", JSON.stringify({ args, input }) + "\\n");
if (args[0] === "config") {
  mkdirSync(env.HOME + "/.openclaw", { recursive: true });
  writeFileSync(env.HOME + "/.openclaw/openclaw.json", "{}");
}
if (args[0] === "gateway") {
  createServer((request, response) => response.end("from " + request.socket.remoteAddress)).listen(env.OPENCLAW_GATEWAY_PORT, "127.0.0.1");
  process.on("SIGTERM", () => process.exit(7));
}
`;

interface Call {
  readonly args: string[];
  readonly input: { models: { providers: { fairlead: object } }; agents?: object } | null;
}

let folder: string;
let host: Server;
let asked: (string | undefined)[];
let refusals: number;
let port: number;
let started: ChildProcess | null;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-openclaw-"));
  asked = [];
  refusals = 0;
  started = null;
  writeFileSync(join(folder, "openclaw.mjs"), OPENCLAW);
  writeFileSync(join(folder, "token"), "first\n");
  host = createServer((request, response) => {
    asked.push(request.headers.authorization);
    if (refusals-- > 0) response.writeHead(503).end('{"error":{"message":"not yet"}}');
    else response.end('{"data":[{"id":"box/tiny"},{"id":"box/large"}]}');
  });
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  // Its gateway listens on the one below.
  port = (await freePorts(2)) + 1;
});

afterEach(async () => {
  if (started?.exitCode === null) {
    started.kill("SIGTERM");
    await once(started, "close");
  }
  host.closeAllConnections();
  host.close();
  rmSync(folder, { recursive: true });
});

describe("the start script of openclaw", () => {
  it("configures the project's models, and makes the first one the default", async () => {
    await start();
    expect(asked).toEqual(["Bearer first"]);
    const [call] = calls();
    expect(call?.args).toEqual(["config", "patch", "--stdin"]);
    expect(call?.input).toEqual({
      secrets: { providers: { fairlead: { source: "file", path: join(folder, "token"), mode: "singleValue" } } },
      models: {
        providers: {
          fairlead: {
            baseUrl: `${urlOf(host)}/v1`,
            api: "openai-completions",
            apiKey: { source: "file", provider: "fairlead", id: "value" },
            models: [
              { id: "box/tiny", name: "box/tiny" },
              { id: "box/large", name: "box/large" },
            ],
          },
        },
      },
      gateway: { mode: "local" },
      agents: { defaults: { model: { primary: "fairlead/box/tiny" } } },
    });
  });

  it("configures it to serve as an engine if it is not an agent", async () => {
    await start({ FAIRLEAD_TOKEN_FILE: undefined });
    expect(asked).toEqual([]);
    const endpoints = { chatCompletions: { enabled: true }, responses: { enabled: true } };
    expect(calls()[0]?.input).toEqual({ gateway: { mode: "local", auth: { mode: "none" }, http: { endpoints } } });
  });

  it("keeps the model of an existing config", async () => {
    mkdirSync(join(folder, ".openclaw"));
    writeFileSync(join(folder, ".openclaw/openclaw.json"), "{}");
    await start();
    expect(calls()[0]?.input).not.toHaveProperty("agents");
  });

  it("uses the model that the agent's config names", async () => {
    await start({ FAIRLEAD_MODEL: "box/large" });
    expect(calls()[0]?.input?.agents).toEqual({ defaults: { model: { primary: "fairlead/box/large" } } });
  });

  it("waits until the inference host responds", async () => {
    refusals = 1;
    await start();
    expect(asked).toHaveLength(2);
  });

  it("forwards connections to its port to the gateway on loopback", async () => {
    await start();
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain("127.0.0.1");
  });

  it("reloads the token when it changes, even if it was missing for a while", async () => {
    await start();
    rmSync(join(folder, "token"));
    await sleep(1500);
    writeFileSync(join(folder, "next"), "second\n");
    renameSync(join(folder, "next"), join(folder, "token"));
    await vi.waitUntil(() => calls().some(({ args }) => args.join(" ") === "secrets reload"), { timeout: 10_000 });
  });

  it("exits with the gateway's exit code", async () => {
    const program = await start();
    program.kill("SIGTERM");
    const [code] = (await once(program, "close")) as [number];
    expect(code).toBe(7);
  });
}, 20_000);

async function start(more: NodeJS.Dict<string> = {}): Promise<ChildProcess> {
  const env = {
    HOME: folder,
    PORT: String(port),
    OPENAI_BASE_URL: `${urlOf(host)}/v1`,
    FAIRLEAD_TOKEN_FILE: join(folder, "token"),
    ...more,
  };
  const args = ["--input-type=module", "--eval", OPENCLAW_START];
  const program = spawn(process.execPath, args, { cwd: folder, env, stdio: "ignore" });
  started = program;
  const answers = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  await vi.waitUntil(answers, { timeout: 15_000 });
  return program;
}

function calls(): Call[] {
  const lines = readFileSync(join(folder, "calls"), "utf8").trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Call);
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${portOf(server)}`;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
