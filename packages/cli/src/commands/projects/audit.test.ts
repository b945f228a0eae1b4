import { afterEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type StubHost, startStubHost } from "../../testing/stub-host.ts";

const event = {
  id: "aud_1",
  at: "2026-03-02T09:30:00.000Z",
  action: "key.create",
  actor: { type: "user", id: "usr_1", email: "ann@example.org" },
  projectId: "prj_1",
  resource: { type: "key", id: "key_1", name: "CI" },
  address: "192.0.2.7",
  requestId: "req_1",
  detail: {},
};
const clock = { now: () => Date.UTC(2026, 2, 8), monotonic: () => 0 };

let host: StubHost | undefined;
afterEach(() => host?.close());

async function audit(...argv: readonly string[]): ReturnType<typeof run> {
  const answer = { body: { auditEvents: [event], nextPageToken: "" } };
  host = await startStubHost({ "GET /v1/projects/prj_1/audit": answer, "GET /v1/audit": answer });
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["audit", ...argv], { env, clock });
}

describe("fairlead audit", () => {
  test("shows the time, action, actor, target and address of the newest 100 events", async () => {
    const { out } = await audit();
    expect(out).toMatch(/2026-03-02T09:30:00.000Z +key\.create +ann@example\.org +CI key_1 +192\.0\.2\.7/);
    expect(host?.seen[0]?.url).toBe("/v1/projects/prj_1/audit?pageSize=100");
  });

  test("sends the filters; durations count back from now, and dates include the whole day", async () => {
    await audit("--action", "key.create", "--actor", "usr_1", "--from", "7d", "--to", "2026-03-05");
    const query = new URL(host?.seen[0]?.url ?? "", "http://x").searchParams;
    expect(Object.fromEntries(query)).toMatchObject({
      action: "key.create",
      actorId: "usr_1",
      from: "2026-03-01T00:00:00.000Z",
      to: "2026-03-06T00:00:00.000Z",
    });
  });

  test("--platform requests the events of every project", async () => {
    expect(JSON.parse((await audit("--platform", "--json")).out)).toEqual({ auditEvents: [event] });
    expect(host?.seen[0]?.url).toMatch(/^\/v1\/audit\?/);
  });

  test("rejects an invalid time as a usage error", async () => {
    expect(await audit("--from", "yesterday")).toMatchObject({
      code: 2,
      notes: expect.stringContaining("is not a time"),
    });
  });
});
