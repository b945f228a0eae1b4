import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const provider = {
  projectId: "prj_1",
  name: "acme",
  scope: "project",
  preset: null,
  baseUrl: "https://api.example.com/v1",
  protocols: ["chat"],
  hasCredential: true,
  credentialHeader: "authorization",
  headers: { "x-title": "Fairlead" },
  forwardHeaders: [],
  timeouts: { connectSeconds: 5, firstByteSeconds: 120, idleSeconds: 120, totalSeconds: 1800 },
  discovery: true,
  models: [{ name: "large" }],
  quirks: { outputLimit: "max_tokens", developerRole: false, thinkingField: "none" },
  createdAt: "2026-03-02T09:30:00.000Z",
  updatedAt: "2026-03-02T09:30:00.000Z",
};
const shared = { ...provider, name: "shared", scope: "platform", baseUrl: "", discovery: false };
const PROVIDERS = "/v1/projects/prj_1/providers";
const made = { [`POST ${PROVIDERS}`]: { body: { provider } } };
const changed = { [`PATCH ${PROVIDERS}/acme`]: { body: provider } };

let dir: string;
let host: StubHost | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-provider-"));
});
afterEach(() => {
  host?.close();
  rmSync(dir, { recursive: true });
});

async function call(argv: readonly string[], answers: Record<string, Answer>, input?: string): ReturnType<typeof run> {
  host?.close();
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  const terminal = fakeTerminal(input === undefined ? {} : { input });
  return run(argv, { env, configDir: dir, terminal });
}

describe("fairlead provider", () => {
  test("create reads the credential from a file and never shows it", async () => {
    const file = join(dir, "key");
    writeFileSync(file, "sk-secret\n");
    const argv = ["provider", "create", "acme", "--url", "https://api.example.com/v1", "--credential-file", file];
    const options = ["--model", "large", "--model", "org/small", "--header", "x-title=Fair=lead", "--protocol", "chat"];
    const { code, out, notes } = await call([...argv, ...options, "--no-discovery"], made);
    expect(code).toBe(0);
    expect(host?.seen).toMatchObject([
      {
        body: {
          name: "acme",
          baseUrl: "https://api.example.com/v1",
          credential: "sk-secret",
          models: [{ name: "large" }, { name: "org/small" }],
          headers: { "x-title": "Fair=lead" },
          protocols: ["chat"],
          discovery: false,
        },
        idempotencyKey: expect.stringMatching(/^req_/),
      },
    ]);
    expect(out).toMatch(/acme +project +https:\/\/api\.example\.com\/v1 +chat +set/);
    expect(out + notes).not.toContain("sk-secret");
    expect(notes).toContain("fairlead provider check acme");
  });

  test("create accepts the credential from standard input, and a preset by name", async () => {
    const argv = ["provider", "create", "acme", "--preset", "openai", "--credential-file", "-"];
    await call(argv, made, "sk-piped\n");
    expect(host?.seen[0]?.body).toEqual({ name: "acme", preset: "openai", credential: "sk-piped" });
    expect(await call(["provider", "create", "acme", "--preset", "skynet"], made)).toMatchObject({ code: 2 });
  });

  test("create sends the settings from a file; flags take precedence", async () => {
    const file = join(dir, "settings.json");
    const models = [{ name: "large", contextTokens: 9, prices: { input: 1, output: 2 } }];
    writeFileSync(file, JSON.stringify({ models, discovery: true, baseUrl: "https://other.example.com" }));
    const argv = ["provider", "create", "acme", "--settings", file, "--url", "https://api.example.com/v1"];
    await call(argv, made);
    expect(host?.seen[0]?.body).toEqual({
      name: "acme",
      models,
      discovery: true,
      baseUrl: "https://api.example.com/v1",
    });
  });

  test.each([
    [["--credential-file", "/nope"], 1, "Cannot read"],
    [["--settings", "/nope"], 1, "Cannot read"],
    [["--credential-file", "-", "--settings", "-"], 2, "only one of"],
    [["--header", "x-title"], 2, "name=value"],
  ])("create rejects %j before sending anything", async (options, code, words) => {
    const answer = await call(["provider", "create", "acme", ...options], made, "");
    expect(answer).toMatchObject({ code, notes: expect.stringContaining(words) });
    expect(host?.seen).toEqual([]);
  });

  test("create rejects an empty credential file", async () => {
    const answer = await call(["provider", "create", "acme", "--credential-file", "-"], made, "\n");
    expect(answer).toMatchObject({ code: 1, notes: expect.stringContaining("expected a credential") });
  });

  test("list shows the project's and the platform's providers", async () => {
    const { out } = await call(["provider", "list"], {
      [`GET ${PROVIDERS}`]: { body: { providers: [provider, shared] } },
    });
    expect(out).toMatch(/acme +project .*discovered/);
    expect(out).toMatch(/shared +platform .*1$/m);
  });

  test("get shows one field per line, and replaces control characters", async () => {
    const hostile = { ...provider, headers: { "x-title": "\u001b[2Jgone" } };
    const { out } = await call(["provider", "get", "acme"], { [`GET ${PROVIDERS}/acme`]: { body: hostile } });
    expect(out).toMatch(/^credential +set, sent in authorization$/m);
    expect(out).toMatch(/^models +large, \(discovered\)$/m);
    expect(out).not.toContain("\u001b");
  });

  test("update sends only the given fields, and says when changing the URL removes the credential", async () => {
    await call(["provider", "update", "acme", "--discovery"], changed);
    expect(host?.seen[0]?.body).toEqual({ discovery: true });
    await call(["provider", "update", "acme", "--forget-credential"], changed);
    expect(host?.seen[0]?.body).toEqual({ credential: null });
    const bare = { [`PATCH ${PROVIDERS}/acme`]: { body: { ...provider, hasCredential: false } } };
    expect((await call(["provider", "update", "acme", "--url", "https://b.example.com"], bare)).notes).toContain(
      "credential was removed",
    );
    expect(await call(["provider", "update", "acme"], changed)).toMatchObject({ code: 2 });
    expect(host?.seen).toEqual([]);
  });

  test("delete names the deleted provider", async () => {
    const answers = { [`DELETE ${PROVIDERS}/acme`]: { body: {} } };
    expect(await call(["provider", "delete", "acme"], answers)).toMatchObject({ code: 0, out: "deleted acme\n" });
  });

  test("check lists the models that can be called, and fails when none can", async () => {
    const path = `POST ${PROVIDERS}/acme:check`;
    const check = { result: "ok", message: "It lists 1 model.", status: 200, latencyMs: 7, models: ["org/large"] };
    expect(await call(["provider", "check", "acme"], { [path]: { body: check } })).toMatchObject({
      code: 0,
      out: "It lists 1 model. (7 ms)\nacme/org/large\n",
    });
    const refused = {
      ...check,
      result: "credential_refused",
      message: "The provider rejected the credential (401).",
      models: [],
    };
    expect(await call(["provider", "check", "acme"], { [path]: { body: refused } })).toMatchObject({
      code: 1,
      out: "",
      notes: "fairlead: The provider rejected the credential (401).\n",
    });
    const json = await call(["provider", "check", "acme", "--json"], { [path]: { body: refused } });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toEqual(refused);
  });
});

describe("fairlead alias", () => {
  const alias = {
    projectId: "prj_1",
    name: "fast",
    targets: ["nodes/qwen3-8b", "acme/org/large"],
    createdAt: "2026-03-02T09:30:00.000Z",
    updatedAt: "2026-03-02T09:30:00.000Z",
  };
  const ALIASES = "/v1/projects/prj_1/aliases";

  test("set sends the targets in order", async () => {
    const answers = { [`PUT ${ALIASES}/fast`]: { body: alias } };
    const { out } = await call(["alias", "set", "fast", "nodes/qwen3-8b", "acme/org/large"], answers);
    expect(host?.seen[0]?.body).toEqual({ targets: alias.targets });
    expect(out).toMatch(/fast +nodes\/qwen3-8b, acme\/org\/large/);
    expect(await call(["alias", "set", "fast"], answers)).toMatchObject({ code: 2 });
  });

  test("list shows the aliases, and delete removes one", async () => {
    const answers = {
      [`GET ${ALIASES}`]: { body: { aliases: [alias] } },
      [`DELETE ${ALIASES}/fast`]: { body: {} },
    };
    expect((await call(["alias", "list"], answers)).out).toContain("acme/org/large");
    expect((await call(["alias", "delete", "fast"], answers)).out).toBe("deleted fast\n");
    expect((await call(["alias", "list"], { [`GET ${ALIASES}`]: { body: { aliases: [] } } })).out).toContain(
      "no aliases",
    );
  });
});

describe("fairlead models", () => {
  const list = async (data: readonly object[]): ReturnType<typeof run> => {
    host = await startStubHost({ "GET /v1/models": { body: { object: "list", data } } });
    return run(["models"], { env: { FAIRLEAD_MODELS_URL: host.url, FAIRLEAD_API_KEY: "flk_x" }, configDir: dir });
  };

  test("shows context lengths and prices when any are known", async () => {
    const prices = { input: 250_000_000, cached_input: 25_000_000, output: 2_000_000_000, per_request: 0 };
    const { out } = await list([{ id: "acme/large", context_length: 131_072, prices }, { id: "box/tiny" }]);
    expect(out).toMatch(/^MODEL +CONTEXT +INPUT +OUTPUT/);
    expect(out).toMatch(/^acme\/large +131072 +\$0\.25 +\$2\.00$/m);
    expect(out).toMatch(/^box\/tiny$/m);
  });

  test("prints only names, one per line, when nothing else is known", async () => {
    expect((await list([{ id: "a/b" }, { id: "c/d" }])).out).toBe("a/b\nc/d\n");
  });
});
