import { afterEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const now = Date.UTC(2026, 2, 1, 12);
const clock = { now: () => now, monotonic: () => performance.now() };
const key = {
  id: "key_1",
  projectId: "prj_1",
  userId: "usr_1",
  name: "laptop",
  keyId: "4Zt0aB9xQ2mLk7Rw",
  createdAt: "2026-03-01T09:30:00.000Z",
  enabled: true,
  expiresAt: null,
  lastUsedAt: null,
  limits: {
    modelAllowList: null,
    requestsPerMinute: null,
    tokensPerMinute: null,
    parallelCalls: null,
    budget: { total: null, daily: null, monthly: null },
  },
  spent: { total: 0, daily: 0, monthly: 0 },
  previousSecret: null,
};
const created = { body: { key: { ...key, keyValue: "flk_value" } } };
const KEYS = "/v1/projects/prj_1/keys";

let host: StubHost | undefined;
afterEach(() => host?.close());

async function call(argv: readonly string[], answers: Record<string, Answer> = {}): ReturnType<typeof run> {
  host?.close();
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["key", ...argv], { env, clock });
}

describe("fairlead key create", () => {
  const answers = { [`POST ${KEYS}`]: created };

  test("prints only the value to standard output, and says how to store it", async () => {
    const result = await call(["create", "laptop"], answers);
    expect(result).toMatchObject({ code: 0, out: "flk_value\n" });
    expect(result.notes).toMatch(/laptop \(key_1\): this value is not shown again.*secret manager/);
    expect(result.notes).not.toContain("flk_value");
    expect(host?.seen[0]?.body).toEqual({ projectId: "prj_1", name: "laptop" });
  });

  test("sends only the limits that were given", async () => {
    const limits = ["--model", "a/b", "--model", "c/d:e", "--expires", "30d", "--parallel-calls", "4"];
    await call(["create", "ci", ...limits, "--budget-daily", "2.50"], answers);
    expect(host?.seen[0]?.body).toEqual({
      projectId: "prj_1",
      name: "ci",
      expiresAt: "2026-03-31T12:00:00.000Z",
      limits: { modelAllowList: ["a/b", "c/d:e"], parallelCalls: 4, budget: { daily: 2_500_000_000 } },
    });
  });

  test("treats an expiry date as the end of that day", async () => {
    await call(["create", "ci", "--expires", "2026-12-31"], answers);
    expect(host?.seen[0]?.body).toMatchObject({ expiresAt: "2027-01-01T00:00:00.000Z" });
  });

  test.each([
    [["--expires", "2020-01-01"], "is in the past"],
    [["--expires", "soon"], "is not a time"],
    [["--requests-per-minute", "0"], "an integer"],
    [["--budget-total", "-1"], "amount in dollars"],
    [["--model", "a/b", "--all-models"], "cannot be used with"],
  ])("rejects %j as a usage error, and sends nothing", async (options, message) => {
    const result = await call(["create", "ci", ...options], answers);
    expect(result).toMatchObject({ code: 2, notes: expect.stringContaining(message) });
    expect(host?.seen).toEqual([]);
  });

  test("reports a value that was lost with its response, says what to do, and creates no second key", async () => {
    const error = { message: "This call was made before, and made key_1.", code: "already_exists", requestId: "req_1" };
    let calls = 0;
    const result = await call(["create", "laptop"], {
      [`POST ${KEYS}`]: (response) => {
        calls += 1;
        if (calls === 1) response.destroy();
        else response.writeHead(409).end(JSON.stringify({ error }));
      },
    });
    expect(result).toMatchObject({ code: 1, notes: expect.stringMatching(/made key_1.*\n.*fairlead key rotate ID/) });
    expect(new Set(host?.seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  });
});

describe("fairlead key", () => {
  const limited = {
    ...key,
    id: "key_2",
    spent: { total: 3_500_000_000, daily: 250_000_000, monthly: 1_000_000_000 },
    limits: {
      modelAllowList: ["a/b"],
      requestsPerMinute: 60,
      tokensPerMinute: 1000,
      parallelCalls: 2,
      budget: { total: 25_000_000_000, daily: 500_000_000, monthly: 0 },
    },
  };

  test("list shows state, expiry, limits and spending of every key", async () => {
    const expired = { ...key, id: "key_3", expiresAt: "2026-02-01T00:00:00.000Z" };
    const keys = [key, limited, expired, { ...key, id: "key_4", enabled: false }];
    const { out } = await call(["list"], { [`GET ${KEYS}`]: { body: { keys, nextPageToken: "" } } });
    expect(out).toMatch(/key_1 +laptop +4Zt0aB9xQ2mLk7Rw +active +never +none\n/);
    const limits =
      "a/b, 60 requests/min, 1000 tokens/min, 2 parallel calls, \\$25.00 total, \\$0.50 per day, \\$0.00 per month";
    expect(out).toMatch(new RegExp(`key_2 .* ${limits} +\\$0.25 today, \\$1.00 this month, \\$3.50 total\n`));
    expect(out).toMatch(/key_3 .* expired +2026-02-01/);
    expect(out).toMatch(/key_4 .* disabled/);
  });

  test("list says how to create a key when the project has none", async () => {
    expect((await call(["list"], { [`GET ${KEYS}`]: { body: { keys: [] } } })).out).toContain("fairlead key create");
  });

  test("get shows one key, in full with --json", async () => {
    const { out } = await call(["get", "key_2", "--json"], { [`GET ${KEYS}/key_2`]: { body: limited } });
    expect(JSON.parse(out)).toEqual(limited);
  });

  test("update sends only the changes, and `none` removes a limit", async () => {
    const answers = { [`PATCH ${KEYS}/key_2`]: { body: { ...limited, enabled: false } } };
    const argv = ["update", "key_2", "--disable", "--name", "CI", "--all-models", "--expires", "none"];
    const result = await call([...argv, "--tokens-per-minute", "none", "--budget-total", "none"], answers);
    expect(result).toMatchObject({ code: 0, out: expect.stringContaining("disabled") });
    expect(host?.seen[0]?.body).toEqual({
      name: "CI",
      enabled: false,
      expiresAt: null,
      limits: { modelAllowList: null, tokensPerMinute: null, budget: { total: null } },
    });
  });

  test("update without a change, or with both --enable and --disable, is a usage error", async () => {
    expect(await call(["update", "key_2"])).toMatchObject({
      code: 2,
      notes: expect.stringContaining("nothing to change"),
    });
    expect((await call(["update", "key_2", "--enable", "--disable"])).code).toBe(2);
  });

  test("rotate prints only the new value, and sets how long the old one keeps working", async () => {
    const answers = { [`POST ${KEYS}/key_1:rotate`]: created };
    expect(await call(["rotate", "key_1"], answers)).toMatchObject({ code: 0, out: "flk_value\n" });
    expect(host?.seen[0]?.body).toEqual({});
    await call(["rotate", "key_1", "--overlap", "1h"], answers);
    expect(host?.seen[0]?.body).toEqual({ overlapSeconds: 3600 });
    await call(["rotate", "key_1", "--overlap", "0"], answers);
    expect(host?.seen[0]?.body).toEqual({ overlapSeconds: 0 });
  });

  test("rotate warns, when its response is lost, that rotating again ends the value still in use", async () => {
    const error = { message: "This call was made before.", code: "already_exists", requestId: "req_1" };
    const answers = { [`POST ${KEYS}/key_1:rotate`]: { status: 409, body: { error } } };
    expect(await call(["rotate", "key_1"], answers)).toMatchObject({
      code: 1,
      notes: expect.stringContaining("stops immediately if you rotate again"),
    });
  });

  test("delete deletes one key", async () => {
    const result = await call(["delete", "key_1"], { [`DELETE ${KEYS}/key_1`]: { body: {} } });
    expect(result).toMatchObject({ code: 0, out: "deleted key_1\n" });
  });
});
