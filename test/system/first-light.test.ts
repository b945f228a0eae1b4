import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv, promisify } from "node:util";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithDocker, docker } from "../support/docker.ts";
import { listen, twoFreePorts } from "../support/ports.ts";
import { runScript, type ScriptResult } from "../support/run-script.ts";
import { waitFor } from "../support/wait-for.ts";

const root = new URL("../..", import.meta.url).pathname;
const question = [{ role: "user" as const, content: "What is the capital of Japan?" }];
const answer = "The capital of Japan is Tokyo.";

/** The whole way, as a newcomer goes it: the real quickstart, real Docker, the real engine, the SDK from npm. */
describeWithDocker("first light", () => {
  const folder = mkdtempSync(join(tmpdir(), "fairlead-first-light-"));
  const dataDir = join(folder, "data");
  const envFile = join(dataDir, "quickstart.env");
  let ports: readonly [number, number] = [0, 0];
  let first: ScriptResult;

  const quickstart = (...args: readonly string[]): Promise<ScriptResult> =>
    runScript("quickstart", ["--data-dir", dataDir, ...args]);
  const env = (): NodeJS.Dict<string> => parseEnv(readFileSync(envFile, "utf8"));
  const pid = (name: string): number => Number(readFileSync(join(dataDir, `${name}.pid`), "utf8"));
  const engines = async (): Promise<string[]> => {
    const ids = await docker("ps", "-q", "--filter", `label=dev.fairlead.node=${env()["FAIRLEAD_NODE_ID"]}`);
    return ids.split("\n").filter(Boolean);
  };
  const client = (): OpenAI =>
    new OpenAI({
      baseURL: `${env()["FAIRLEAD_MODELS_URL"]}/v1`,
      apiKey: env()["FAIRLEAD_API_KEY"] ?? "",
      maxRetries: 0,
    });
  const ask = async (): Promise<string | null | undefined> => {
    const model = env()["FAIRLEAD_MODEL"] ?? "";
    const completion = await client().chat.completions.create({ model, messages: question, temperature: 0 });
    return completion.choices[0]?.message.content;
  };

  beforeAll(async () => {
    ports = await twoFreePorts();
    first = await quickstart("--platform-port", String(ports[0]), "--inference-port", String(ports[1]));
  });

  afterAll(async () => {
    await quickstart("--purge");
    rmSync(folder, { recursive: true });
  });

  test("the quickstart ends with a streamed answer, the addresses, the key and next commands", () => {
    expect(first).toMatchObject({ code: 0, errors: "" });
    expect(first.out).toMatch(/waiting until the node is active/);
    expect(first.out).toMatch(/\n> .+\n.+\n/);
    expect(first.out).toContain(`http://127.0.0.1:${ports[0]}`);
    expect(first.out).toContain(`http://127.0.0.1:${ports[1]}`);
    expect(first.out).toContain(env()["FAIRLEAD_API_KEY"]);
    expect(first.out).toContain("npx fairlead chat");
  });

  test("the env file holds every client setting and only its owner can read it", () => {
    expect(env()).toEqual({
      FAIRLEAD_BASE_URL: `http://127.0.0.1:${ports[0]}`,
      FAIRLEAD_MODELS_URL: `http://127.0.0.1:${ports[1]}`,
      FAIRLEAD_TOKEN: expect.stringMatching(/^eyJ/),
      FAIRLEAD_PROJECT_ID: expect.stringMatching(/^prj_/),
      FAIRLEAD_API_KEY: expect.stringMatching(/^flk_/),
      FAIRLEAD_NODE_ID: expect.stringMatching(/^nod_/),
      FAIRLEAD_MODEL: "local/tinychat-6m",
    });
    expect(statSync(envFile).mode & 0o777).toBe(0o600);
  });

  test("no secret is left in a log", () => {
    const logs = ["server", "daemon"].map((name) => readFileSync(join(dataDir, `${name}.log`), "utf8")).join("");
    expect(logs).not.toContain(env()["FAIRLEAD_API_KEY"]);
    expect(logs).not.toContain(env()["FAIRLEAD_TOKEN"]);
    expect(logs).not.toMatch(/flb_[\w-]{20}/);
  });

  test("the openai SDK gets an answer", async () => {
    expect(await ask()).toBe(answer);
  });

  test("the openai SDK gets a streamed answer", async () => {
    const model = env()["FAIRLEAD_MODEL"] ?? "";
    const stream = await client().chat.completions.create({ model, messages: question, temperature: 0, stream: true });
    const pieces = [];
    for await (const chunk of stream) pieces.push(chunk.choices[0]?.delta.content ?? "");
    expect(pieces.join("")).toBe(answer);
    expect(pieces.filter(Boolean).length).toBeGreaterThan(1);
  });

  test("the command line talks to the installation with the env file alone", async () => {
    const run = promisify(execFile);
    const fairlead = async (...args: string[]): Promise<string> =>
      (await run(`${root}packages/cli/bin/fairlead.js`, [...args, "--env-file", envFile])).stdout;
    expect(await fairlead("models")).toBe("local/tinychat-6m\n");
    expect(await fairlead("node", "list")).toMatch(/local +active/);
    expect(await fairlead("chat", "What is 2+2?")).toMatch(/4/);
  });

  test("a second run reuses what runs and renews the token", async () => {
    const before = { env: env(), server: pid("server"), daemon: pid("daemon"), engines: await engines() };
    const second = await quickstart();
    expect(second).toMatchObject({ code: 0, errors: "" });
    const after = { env: env(), server: pid("server"), daemon: pid("daemon"), engines: await engines() };
    expect(after).toEqual({ ...before, env: { ...before.env, FAIRLEAD_TOKEN: expect.stringMatching(/^eyJ/) } });
    expect(after.env["FAIRLEAD_TOKEN"]).not.toBe(before.env["FAIRLEAD_TOKEN"]);
  });

  test("an engine that is killed comes back by itself", async () => {
    const [engine = ""] = await engines();
    await docker("kill", "--signal", "KILL", engine);
    expect(await waitFor("an answer from the new engine", 90_000, ask)).toBe(answer);
  });

  test("a control plane, a daemon and an engine that were killed together are back with the next run", async () => {
    process.kill(pid("server"), "SIGKILL");
    process.kill(pid("daemon"), "SIGKILL");
    const [engine = ""] = await engines();
    await docker("kill", "--signal", "KILL", engine);
    expect(await quickstart()).toMatchObject({ code: 0, errors: "" });
    expect(await ask()).toBe(answer);
  });

  test("a taken port is named together with who holds it, and what runs goes on", async () => {
    const taken = await listen();
    const result = await quickstart("--platform-port", String(taken.port));
    await taken.close();
    expect(result.code).toBe(1);
    expect(result.errors).toMatch(new RegExp(`Port ${taken.port} is taken by \\S+ \\(pid ${process.pid}\\)`));
    expect(await ask()).toBe(answer);
  });

  test("other ports move the installation, its node included", async () => {
    const before = env();
    ports = await twoFreePorts();
    const moved = await quickstart("--platform-port", String(ports[0]), "--inference-port", String(ports[1]));
    expect(moved).toMatchObject({ code: 0, errors: "" });
    expect(env()["FAIRLEAD_MODELS_URL"]).toBe(`http://127.0.0.1:${ports[1]}`);
    expect(env()["FAIRLEAD_NODE_ID"]).toBe(before["FAIRLEAD_NODE_ID"]);
    expect(await ask()).toBe(answer);
  });

  test("--down stops the programs and the engine, and keeps the data", async () => {
    const before = env();
    expect(await quickstart("--down")).toMatchObject({ code: 0, errors: "" });
    expect(await engines()).toEqual([]);
    await expect(fetch(`http://127.0.0.1:${ports[0]}/healthz`)).rejects.toThrow();
    expect(env()).toEqual(before);
    expect(await quickstart("--down")).toMatchObject({ code: 0 });
  });

  test("after --down the same project, key and node serve again", async () => {
    const before = env();
    expect(await quickstart()).toMatchObject({ code: 0, errors: "" });
    expect({ ...env(), FAIRLEAD_TOKEN: "" }).toEqual({ ...before, FAIRLEAD_TOKEN: "" });
    expect(await ask()).toBe(answer);
  });

  test("--purge removes data, containers and volumes", async () => {
    const label = `label=dev.fairlead.node=${env()["FAIRLEAD_NODE_ID"]}`;
    expect(await quickstart("--purge")).toMatchObject({ code: 0, errors: "" });
    expect(existsSync(dataDir)).toBe(false);
    expect(await docker("ps", "-aq", "--filter", label)).toBe("");
  });
});
