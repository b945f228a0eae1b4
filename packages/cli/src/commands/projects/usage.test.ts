import { afterEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type StubHost, startStubHost } from "../../testing/stub-host.ts";

const sums = {
  calls: 3,
  estimatedCalls: 0,
  inputTokens: 1200,
  cachedInputTokens: 800,
  outputTokens: 90,
  reasoningTokens: 40,
  costNanoDollars: 1_250_000_000,
};
const report = {
  from: "2026-02-06T00:00:00.000Z",
  to: "2026-03-08T09:00:00.000Z",
  groupBy: ["model", "day"],
  totals: { ...sums, calls: 4, estimatedCalls: 1, costNanoDollars: 1_250_000_007 },
  groups: [
    { model: "attic/small", day: "2026-03-02", ...sums },
    { model: null, day: "2026-03-03", ...sums, calls: 1, costNanoDollars: 7 },
  ],
  other: null,
  nextPageToken: "",
};
const call = {
  requestId: "req_1",
  at: "2026-03-02T09:31:12.000Z",
  keyId: "key_1",
  userId: "usr_1",
  agentId: null,
  model: "attic/\u001b[31msmall",
  upstream: "node:attic",
  dialect: "chat",
  stream: true,
  outcome: "ok",
  status: 200,
  inputTokens: 812,
  cachedInputTokens: 768,
  outputTokens: 164,
  reasoningTokens: 0,
  estimated: true,
  costNanoDollars: 41_300,
  attempts: 1,
  overheadMs: 0.412,
  firstTokenMs: 96,
  durationMs: 1840,
};
const clock = { now: () => Date.UTC(2026, 2, 8), monotonic: () => 0 };
const USAGE = "/v1/projects/prj_1/usage";

let host: StubHost | undefined;
afterEach(() => host?.close());

async function usage(argv: readonly string[], ...bodies: readonly object[]): ReturnType<typeof run> {
  host?.close();
  const pages = bodies.length === 0 ? [report] : [...bodies];
  host = await startStubHost({
    [`GET ${USAGE}`]: (response) => void response.end(JSON.stringify(pages.shift())),
    [`GET ${USAGE}/calls`]: { body: { calls: [call], nextPageToken: "" } },
  });
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["usage", ...argv], { env, clock });
}
const sent = (): Record<string, string> =>
  Object.fromEntries(new URL(host?.seen[0]?.url ?? "", "http://x").searchParams);

describe("fairlead usage", () => {
  test("shows the groups, then their total, then the time span", async () => {
    const { out } = await usage(["--by", "model,day"]);
    expect(out.split("\n")).toEqual([
      "MODEL        DAY         CALLS  INPUT  CACHED  OUTPUT  REASONING  COST",
      "attic/small  2026-03-02  3      1200   800     90      40         $1.25",
      "-            2026-03-03  1      1200   800     90      40         $0.000000007",
      "TOTAL                    4      1200   800     90      40         $1.250000007",
      "from 2026-02-06 to 2026-03-08 09:00 UTC",
      "tokens estimated: 1 of 4 calls",
      "",
    ]);
    expect(sent()).toEqual({ groupBy: "model,day" });
  });

  test("shows the groups of all pages, and the rest as OTHER", async () => {
    const [first, second] = report.groups;
    const pages = [
      { ...report, groups: [first], other: { ...sums, calls: 9 }, nextPageToken: "t1" },
      { ...report, groups: [second] },
    ];
    const { out } = await usage(["--by", "model,day"], ...pages);
    const rows = out.split("\n").map((line) => line.split(/ {2,}/).slice(0, 3));
    expect(rows.slice(1, 5)).toEqual([
      ["attic/small", "2026-03-02", "3"],
      ["-", "2026-03-03", "1"],
      ["OTHER", "9", "1200"],
      ["TOTAL", "4", "1200"],
    ]);
    expect(host?.seen.map(({ url }) => new URL(url, "http://x").searchParams.get("pageToken"))).toEqual([null, "t1"]);
    const { out: json } = await usage(["--json"], ...pages);
    expect(JSON.parse(json)).toEqual({ ...report, other: { ...sums, calls: 9 } });
  });

  test("sends the time span; durations count back from now, and dates include the whole day", async () => {
    await usage(["--from", "7d", "--to", "2026-03-05", "--by", "key"]);
    expect(sent()).toEqual({ groupBy: "key", from: "2026-03-01T00:00:00.000Z", to: "2026-03-06T00:00:00.000Z" });
  });

  test("says so when there were no calls, and prints the whole report as JSON", async () => {
    const none = { ...report, groups: [] };
    expect((await usage([], none)).out).toBe("no calls from 2026-02-06 to 2026-03-08 09:00 UTC\n");
    expect(JSON.parse((await usage(["--json"])).out)).toEqual(report);
  });

  test("--calls shows the newest calls with their outcomes, and replaces control characters", async () => {
    const { out } = await usage(["--calls", "--key", "key_1", "--outcome", "ok", "--model", "attic/small"]);
    expect(out).toMatch(
      /09:31:12\.000Z +ok +attic\/\ufffd\[31msmall +node:attic +key_1 +812 +164 \(estimated\) +\$0\.0000413 +1\.84 s +req_1/,
    );
    expect(sent()).toEqual({ keyId: "key_1", model: "attic/small", outcome: "ok", pageSize: "50" });
  });

  test("--calls --agent requests only the calls of one agent", async () => {
    await usage(["--calls", "--agent", "agt_1"]);
    expect(sent()).toEqual({ agentId: "agt_1", pageSize: "50" });
  });

  test.each([
    [["--by", "colour"], "comma-separated list of day"],
    [["--calls", "--by", "day"], "cannot be used with"],
    [["--key", "key_1"], "require --calls"],
    [["--agent", "agt_1"], "require --calls"],
    [["--from", "yesterday"], "is not a time"],
  ])("rejects %j as a usage error, and sends nothing", async (argv, why) => {
    expect(await usage(argv)).toMatchObject({ code: 2, notes: expect.stringContaining(why) });
    expect(host?.seen).toEqual([]);
  });
});
