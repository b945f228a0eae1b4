import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type StubHost, startStubHost } from "../../testing/stub-host.ts";

const own = { requestsPerMinute: 600, tokensPerMinute: null, parallelCalls: null };
const limits = { ...own, effective: { requestsPerMinute: 600, tokensPerMinute: 1_000_000, parallelCalls: null } };

let configDir: string;
let host: StubHost;
beforeEach(async () => {
  configDir = mkdtempSync(join(tmpdir(), "fairlead-limits-"));
  const answer = { body: limits };
  host = await startStubHost({ "GET /v1/projects/prj_1/limits": answer, "PATCH /v1/projects/prj_1/limits": answer });
});
afterEach(() => {
  host.close();
  rmSync(configDir, { recursive: true });
});

const call = (...argv: readonly string[]): ReturnType<typeof run> =>
  run(["project", "limits", ...argv], { env: { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok" }, configDir });

describe("fairlead project limits", () => {
  test("show prints each effective limit, and whether the project or the server sets it", async () => {
    const { code, out } = await call("show", "prj_1");
    expect(code).toBe(0);
    expect(out).toMatch(/requests per minute +600 +project\n/);
    expect(out).toMatch(/tokens per minute +1000000 +server\n/);
    expect(out).toMatch(/parallel calls +no limit +server/);
    expect(JSON.parse((await call("show", "prj_1", "--json")).out)).toEqual(limits);
  });

  test("set sends only the given limits, and null for the server's default", async () => {
    expect(await call("set", "prj_1", "--requests-per-minute", "600", "--parallel-calls", "default")).toMatchObject({
      code: 0,
    });
    expect(host.seen[0]).toMatchObject({ method: "PATCH", body: { requestsPerMinute: 600, parallelCalls: null } });
  });

  test.each([[], ["--requests-per-minute", "0"], ["--parallel-calls", "none"], ["--tokens-per-minute", "1e3"]])(
    "set rejects %s as a usage error, and sends nothing",
    async (...argv) => {
      expect(await call("set", "prj_1", ...argv)).toMatchObject({ code: 2 });
      expect(host.seen).toEqual([]);
    },
  );
});
