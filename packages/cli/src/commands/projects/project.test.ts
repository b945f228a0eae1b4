import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FakeTerminal, fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const project = {
  id: "prj_1",
  userId: "usr_1",
  name: "Research",
  createdAt: "2030-01-01T00:00:00.000Z",
  updatedAt: "2030-01-01T00:00:00.000Z",
};
const found = { "GET /v1/projects/prj_1": { body: project } };

let configDir: string;
let host: StubHost | undefined;
beforeEach(() => {
  configDir = mkdtempSync(join(tmpdir(), "fairlead-project-"));
});
afterEach(() => {
  host?.close();
  rmSync(configDir, { recursive: true });
});

interface Given {
  readonly answers?: Record<string, Answer>;
  readonly terminal?: FakeTerminal;
}

async function call(argv: readonly string[], { answers = found, terminal = fakeTerminal() }: Given = {}) {
  host?.close();
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok" };
  return run(["project", ...argv], { env, configDir, terminal });
}
const deletes = (): number => host?.seen.filter(({ method }) => method === "DELETE").length ?? 0;

describe("fairlead project", () => {
  test("create sends a new Idempotency-Key with every run", async () => {
    const answers = { "POST /v1/projects": { body: { project } } };
    expect(await call(["create", "Research"], { answers })).toMatchObject({ code: 0, out: "prj_1 Research\n" });
    const first = host?.seen[0]?.idempotencyKey;
    await call(["create", "Research"], { answers });
    expect(first).toMatch(/^req_/);
    expect(host?.seen[0]?.idempotencyKey).not.toBe(first);
  });

  test("list shows every project, or how to create the first one", async () => {
    const one = await call(["list"], { answers: { "GET /v1/projects": { body: { projects: [project] } } } });
    expect(one.out).toMatch(/prj_1 +Research +2030-01-01/);
    const none = await call(["list"], { answers: { "GET /v1/projects": { body: { projects: [] } } } });
    expect(none.out).toContain("fairlead project create");
  });

  test("list marks projects that are being deleted", async () => {
    const going = { ...project, deletingSince: "2030-01-02T00:00:00.000Z" };
    const { out } = await call(["list"], { answers: { "GET /v1/projects": { body: { projects: [going] } } } });
    expect(out).toMatch(/prj_1 +Research .* deleting\n/);
  });

  test("rename sends only the name", async () => {
    const renamed = { ...project, name: 'A "better" name' };
    const answers = { "PATCH /v1/projects/prj_1": { body: renamed } };
    expect((await call(["rename", "prj_1", renamed.name], { answers })).out).toBe('prj_1 A "better" name\n');
    expect(host?.seen[0]?.body).toEqual({ name: renamed.name });
  });

  test("default-model sends only the model, or null without one", async () => {
    const answers = { "PATCH /v1/projects/prj_1": { body: { ...project, defaultModel: "a/b" } } };
    expect((await call(["default-model", "prj_1", "a/b"], { answers })).out).toBe("calls without a model use a/b\n");
    expect(host?.seen[0]?.body).toEqual({ defaultModel: "a/b" });
    await call(["default-model", "prj_1"], { answers });
    expect(host?.seen[0]?.body).toEqual({ defaultModel: null });
  });

  test("get replaces control characters in the name, but not in JSON", async () => {
    const answers = { "GET /v1/projects/prj_1": { body: { ...project, name: "\u001b[2Jgone" } } };
    expect((await call(["get", "prj_1"], { answers })).out).toBe("prj_1 \ufffd[2Jgone\n");
    expect(JSON.parse((await call(["get", "prj_1", "--json"], { answers })).out).name).toBe("\u001b[2Jgone");
  });
});

describe("fairlead project delete", () => {
  const answers = { ...found, "DELETE /v1/projects/prj_1": { body: {} } };

  test("asks for the name at a terminal", async () => {
    const terminal = fakeTerminal({ typed: "Research" });
    const result = await call(["delete", "prj_1"], { answers, terminal });
    expect(result).toMatchObject({ code: 0, out: "deleting prj_1 Research\n" });
    expect(result.notes).toContain("permanently deletes");
    expect(host?.seen.at(-1)).toMatchObject({ method: "DELETE", url: "/v1/projects/prj_1?confirmName=Research" });
  });

  test.each(["research", "", "Research "])("deletes nothing when %j is typed", async (typed) => {
    const result = await call(["delete", "prj_1"], { answers, terminal: fakeTerminal({ typed }) });
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("Nothing was deleted") });
    expect(deletes()).toBe(0);
  });

  test("requires --confirm without a terminal", async () => {
    const terminal = fakeTerminal({ input: "Research\n" });
    expect(await call(["delete", "prj_1"], { answers, terminal })).toMatchObject({
      code: 2,
      notes: expect.stringContaining("--confirm NAME"),
    });
    const confirmed = await call(["delete", "prj_1", "--confirm", "Research"], {
      answers,
      terminal: fakeTerminal({ input: "" }),
    });
    expect(confirmed.code).toBe(0);
    expect((await call(["delete", "prj_1", "--confirm", "Other"], { answers })).code).toBe(1);
    expect(deletes()).toBe(0);
  });
});

describe("fairlead project use", () => {
  const env = (): Record<string, string> => ({ FAIRLEAD_BASE_URL: host?.url ?? "", FAIRLEAD_TOKEN: "tok" });
  const answers = {
    ...found,
    "DELETE /v1/projects/prj_1": { body: {} },
    "GET /v1/nodes": { body: { nodes: [] } },
  };

  test("sets the project of later commands on the platform; --project and the environment override it", async () => {
    await call(["use", "prj_1"], { answers });
    const asked = async (...more: string[]): Promise<string | undefined> => {
      await run(["node", "list", ...more], { env: env(), configDir });
      return host?.seen.at(-1)?.url;
    };
    expect(await asked()).toContain("projectId=prj_1&");
    expect(await asked("--project", "prj_2")).toContain("projectId=prj_2&");
    const elsewhere = await run(["node", "list", "--base-url", "http://localhost:1"], { env: env(), configDir });
    expect(elsewhere.notes).toContain("fairlead project use");
  });

  test("warns when FAIRLEAD_PROJECT_ID names another project, which takes precedence", async () => {
    host = await startStubHost(answers);
    const inEnvironment = (id: string): ReturnType<typeof run> =>
      run(["project", "use", "prj_1"], { env: { ...env(), FAIRLEAD_PROJECT_ID: id }, configDir });
    expect((await inEnvironment("prj_2")).notes).toContain("`unset FAIRLEAD_PROJECT_ID`");
    expect((await inEnvironment("prj_1")).notes).not.toContain("unset");
  });

  test("fails for a project that the caller cannot see, and is cleared when the project is deleted", async () => {
    expect((await call(["use", "prj_9"], { answers })).code).toBe(1);
    await call(["use", "prj_1"], { answers });
    await run(["project", "delete", "prj_1", "--confirm", "Research"], { env: env(), configDir });
    expect((await run(["node", "list"], { env: env(), configDir })).notes).toContain("No project is set");
  });
});
