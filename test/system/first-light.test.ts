import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv, promisify } from "node:util";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { FakeBrowser } from "../../packages/control-plane/src/people/pages/testing/fake-browser.ts";
import { describeWithDocker, docker } from "../support/docker.ts";
import { listen, twoFreePorts } from "../support/ports.ts";
import { runScript, type ScriptResult } from "../support/run-script.ts";
import { waitFor } from "../support/wait-for.ts";

const question = [{ role: "user" as const, content: "What is the capital of Japan?" }];
const answer = "The capital of Japan is Tokyo.";

const credentialsSchema = z.object({
  platforms: z.record(z.string(), z.object({ login: z.object({ accessToken: z.string() }) })),
});

/** The whole way, as a newcomer goes it: the real quickstart, real Docker, the real engine, the SDK from npm. */
describeWithDocker("the quickstart", () => {
  const folder = mkdtempSync(join(tmpdir(), "fairlead-first-light-"));
  const dataDir = join(folder, "data");
  const envFile = join(dataDir, "quickstart.env");
  let ports: readonly [number, number] = [0, 0];
  let first: ScriptResult;

  const quickstart = (...args: readonly string[]): Promise<ScriptResult> =>
    runScript("quickstart", ["--data-dir", dataDir, ...args], { XDG_CONFIG_HOME: folder });
  const credentials = (): string => readFileSync(join(folder, "fairlead", "credentials.json"), "utf8");
  /** As in a shell that sourced the env file: the command that the quickstart names is found on the PATH. */
  const fairlead = async (...args: string[]): Promise<string> => {
    const [, command = ""] = /^ {2}(\S*fairlead\S*) node list$/m.exec(first.out) ?? [];
    const shell = { ...env(), PATH: process.env["PATH"], HOME: folder, XDG_CONFIG_HOME: folder };
    return (await promisify(execFile)(command, args, { env: shell })).stdout;
  };
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

  test("ends with a streamed response, the addresses, the key and the next commands", () => {
    expect(first).toMatchObject({ code: 0, errors: "" });
    expect(first.out).toMatch(/waiting until the node is active/);
    expect(first.out).toMatch(/\n> .+\n.+\n/);
    expect(first.out).toContain(`http://127.0.0.1:${ports[0]}`);
    expect(first.out).toContain(`http://127.0.0.1:${ports[1]}`);
    expect(first.out).toContain(env()["FAIRLEAD_API_KEY"]);
    expect(first.out).toContain("fairlead chat");
    expect(first.out).not.toContain("npx");
  });

  test("writes every client setting to an env file that only its owner can read", () => {
    expect(env()).toEqual({
      FAIRLEAD_BASE_URL: `http://127.0.0.1:${ports[0]}`,
      FAIRLEAD_MODELS_URL: `http://127.0.0.1:${ports[1]}`,
      FAIRLEAD_PROJECT_ID: expect.stringMatching(/^prj_/),
      FAIRLEAD_API_KEY: expect.stringMatching(/^flk_/),
      FAIRLEAD_NODE_ID: expect.stringMatching(/^nod_/),
      FAIRLEAD_MODEL: "local/tinychat-6m",
      FAIRLEAD_CONFIG: join(dataDir, "config.yaml"),
    });
    expect(statSync(envFile).mode & 0o777).toBe(0o600);
  });

  test("leaves no secret in a log", () => {
    const logs = ["server", "daemon"].map((name) => readFileSync(join(dataDir, `${name}.log`), "utf8")).join("");
    expect(logs).not.toContain(env()["FAIRLEAD_API_KEY"]);
    const kept = credentialsSchema.parse(JSON.parse(credentials())).platforms;
    const tokens = Object.values(kept).map(({ login }) => login.accessToken);
    expect(tokens).toEqual([expect.stringMatching(/^eyJ/)]);
    expect(logs).not.toContain(tokens[0]);
    expect(logs).not.toMatch(/flb_[\w-]{20}/);
  });

  test("serves the openai SDK", async () => {
    expect(await ask()).toBe(answer);
  });

  test("streams to the openai SDK", async () => {
    const model = env()["FAIRLEAD_MODEL"] ?? "";
    const stream = await client().chat.completions.create({ model, messages: question, temperature: 0, stream: true });
    const pieces = [];
    for await (const chunk of stream) pieces.push(chunk.choices[0]?.delta.content ?? "");
    expect(pieces.join("")).toBe(answer);
    expect(pieces.filter(Boolean).length).toBeGreaterThan(1);
  });

  test("sends a request without `model` to the node's model", async () => {
    const response = await fetch(`${env()["FAIRLEAD_MODELS_URL"]}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${env()["FAIRLEAD_API_KEY"]}`, "content-type": "application/json" },
      body: JSON.stringify({ messages: question, temperature: 0 }),
    });
    expect(await response.text()).toContain(answer);
    expect(response.status).toBe(200);
  });

  test("installs a signed-in `fairlead` on the PATH that requires only the env file", async () => {
    expect(await fairlead("whoami")).toContain("admin@fairlead.local");
    expect(await fairlead("models")).toBe("local/tinychat-6m\n");
    expect(await fairlead("node", "list")).toMatch(/local +active/);
    expect(await fairlead("chat", "What is 2+2?")).toMatch(/4/);
  });

  test("keeps the command line signed in when the administrator sets a password", async () => {
    const link = (await fairlead("admin", "reset-link", "admin@fairlead.local")).trim();
    const { origin, pathname } = new URL(link);
    const browser = new FakeBrowser(origin);
    await browser.open(pathname);
    const set = await browser.submit(pathname, { email: "admin@fairlead.local", password: "a long pass phrase" });
    expect(set.status).toBe(200);
    expect(await fairlead("project", "list")).toContain(env()["FAIRLEAD_PROJECT_ID"]);
  });

  test("reuses what runs and a login that works in a second run", async () => {
    const before = {
      login: credentials(),
      env: env(),
      server: pid("server"),
      daemon: pid("daemon"),
      engines: await engines(),
    };
    const second = await quickstart();
    expect(second).toMatchObject({ code: 0, errors: "" });
    const after = {
      login: credentials(),
      env: env(),
      server: pid("server"),
      daemon: pid("daemon"),
      engines: await engines(),
    };
    expect(after).toEqual(before);
  });

  test("recovers a killed engine by itself", async () => {
    const [engine = ""] = await engines();
    await docker("kill", "--signal", "KILL", engine);
    expect(await waitFor("an answer from the new engine", 90_000, ask)).toBe(answer);
  });

  test("restores a control plane, daemon and engine that were killed together in the next run", async () => {
    process.kill(pid("server"), "SIGKILL");
    process.kill(pid("daemon"), "SIGKILL");
    const [engine = ""] = await engines();
    await docker("kill", "--signal", "KILL", engine);
    expect(await quickstart()).toMatchObject({ code: 0, errors: "" });
    expect(await ask()).toBe(answer);
  });

  test("reports a port in use and the process that uses it, and the installation keeps running", async () => {
    const taken = await listen();
    const result = await quickstart("--platform-port", String(taken.port));
    await taken.close();
    expect(result.code).toBe(1);
    expect(result.errors).toMatch(new RegExp(`Port ${taken.port} is in use by \\S+ \\(pid ${process.pid}\\)`));
    expect(await ask()).toBe(answer);
  });

  test("moves the installation and its node to other ports", async () => {
    const before = env();
    ports = await twoFreePorts();
    const moved = await quickstart("--platform-port", String(ports[0]), "--inference-port", String(ports[1]));
    expect(moved).toMatchObject({ code: 0, errors: "" });
    expect(env()["FAIRLEAD_MODELS_URL"]).toBe(`http://127.0.0.1:${ports[1]}`);
    expect(env()["FAIRLEAD_NODE_ID"]).toBe(before["FAIRLEAD_NODE_ID"]);
    expect(await ask()).toBe(answer);
  });

  test("with --down stops the programs and the engine, and keeps the data", async () => {
    const before = env();
    expect(await quickstart("--down")).toMatchObject({ code: 0, errors: "" });
    expect(await engines()).toEqual([]);
    await expect(fetch(`http://127.0.0.1:${ports[0]}/healthz`)).rejects.toThrow();
    expect(env()).toEqual(before);
    expect(await quickstart("--down")).toMatchObject({ code: 0 });
  });

  test("after --down serves again with the same project, key and node", async () => {
    const before = env();
    expect(await quickstart()).toMatchObject({ code: 0, errors: "" });
    expect(env()).toEqual(before);
    expect(await ask()).toBe(answer);
  });

  test("with --purge removes data, containers, volumes and networks", async () => {
    const { FAIRLEAD_NODE_ID: nodeId, FAIRLEAD_BASE_URL: url } = env();
    const command = /^ {2}command line .*ok +\d+s {2}(\/\S+)$/m.exec(first.out)?.[1] ?? "";
    const label = `label=dev.fairlead.node=${nodeId}`;
    expect(await quickstart("--purge")).toMatchObject({ code: 0, errors: "" });
    expect(existsSync(dataDir)).toBe(false);
    expect(Object.keys(credentialsSchema.parse(JSON.parse(credentials())).platforms)).not.toContain(url);
    expect(existsSync(command)).toBe(false);
    expect(existsSync(`/run/fairlead-daemon/secrets/${nodeId}`)).toBe(false);
    expect(await docker("ps", "-aq", "--filter", label)).toBe("");
    expect(await docker("network", "ls", "-q", "--filter", label)).toBe("");
  });
});
