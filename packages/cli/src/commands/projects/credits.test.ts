import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const entry = {
  id: "led_1",
  at: "2026-03-02T09:30:00.000Z",
  kind: "credit",
  amountNanoDollars: 25_000_000_000,
  callId: null,
  keyId: null,
  note: "Invoice 17",
};
const CREDITS = "POST /v1/projects/prj_1/credits";

let configDir: string;
let host: StubHost | undefined;
beforeEach(() => {
  configDir = mkdtempSync(join(tmpdir(), "fairlead-credits-"));
});
afterEach(() => {
  host?.close();
  rmSync(configDir, { recursive: true });
});

async function call(argv: readonly string[], answers: Record<string, Answer>): ReturnType<typeof run> {
  host?.close();
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["credits", ...argv], { env, configDir });
}

describe("fairlead credits", () => {
  test("add sends whole nano-dollars, with an Idempotency-Key", async () => {
    const answers = { [CREDITS]: { body: { ledgerEntry: entry } } };
    expect(await call(["add", "25", "--note", "Invoice 17"], answers)).toMatchObject({
      code: 0,
      out: "+$25.00 for prj_1\n",
    });
    expect(host?.seen[0]?.body).toEqual({ amountNanoDollars: 25_000_000_000, note: "Invoice 17" });
    expect(host?.seen[0]?.idempotencyKey).toMatch(/^req_/);
    await call(["add", "0.000000001", "--take-back"], answers);
    expect(host?.seen[0]?.body).toEqual({ amountNanoDollars: -1, note: "" });
  });

  test.each(["0", "-5", "1e3", "ten"])("add rejects %s before sending anything", async (amount) => {
    expect(await call(["add", "--", amount], {})).toMatchObject({ code: 2 });
    expect(host?.seen).toEqual([]);
  });

  test("balance shows what is left, what is reserved, and whether calls are charged", async () => {
    const body = { mode: "off", balanceNanoDollars: 1_500_000_000, heldNanoDollars: 10, runningCalls: 2 };
    const { out } = await call(["balance"], { "GET /v1/projects/prj_1/balance": { body } });
    expect(out).toBe("$1.50 left, $0.00000001 reserved by 2 running calls (billing is off: calls are not charged)\n");
  });

  test("ledger shows credits and charges", async () => {
    const spent = { ...entry, kind: "settle", amountNanoDollars: -42, callId: "req_1", note: "" };
    const answers = {
      "GET /v1/projects/prj_1/ledger": { body: { ledgerEntries: [spent, entry], nextPageToken: "" } },
    };
    const { out } = await call(["ledger"], answers);
    expect(out).toMatch(/settle +-\$0\.000000042 +req_1/);
    expect(out).toMatch(/credit +\+\$25\.00 +Invoice 17/);
  });
});
