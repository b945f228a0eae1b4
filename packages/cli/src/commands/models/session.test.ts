import { afterEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const session = {
  id: "sis_1",
  userAgent: "Firefox\u001b[2J",
  address: "192.0.2.7",
  createdAt: "2026-03-01T00:00:00.000Z",
  expiresAt: "2026-03-31T00:00:00.000Z",
  current: true,
};

let host: StubHost | undefined;
afterEach(() => host?.close());

async function call(argv: readonly string[], answers: Record<string, Answer>): ReturnType<typeof run> {
  host = await startStubHost(answers);
  return run(["session", ...argv], { env: { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok" } });
}

describe("fairlead session", () => {
  test("list replaces control characters in client names, and marks the current session", async () => {
    const { out } = await call(["list"], { "GET /v1/me/sessions": { body: { sessions: [session] } } });
    expect(out).toMatch(
      /sis_1 +current +2026-03-01T00:00:00.000Z +2026-03-31T00:00:00.000Z +192\.0\.2\.7 +Firefox\ufffd/,
    );
  });

  test("revoke ends a session by its ID", async () => {
    const result = await call(["revoke", "sis_1"], { "DELETE /v1/me/sessions/sis_1": { body: {} } });
    expect(result).toMatchObject({ code: 0, out: "revoked sis_1\n" });
  });

  test("escapes the ID in the request path", async () => {
    await call(["revoke", "../../projects/prj_1"], {});
    expect(host?.seen[0]?.url).toBe("/v1/me/sessions/..%2F..%2Fprojects%2Fprj_1");
  });
});
