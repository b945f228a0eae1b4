import type { LocalAdmin } from "@fairlead/control-plane/admin";
import { DomainError } from "@fairlead/protocol/errors";
import { describe, expect, test } from "vitest";
import type { ControlPlaneSource, LoadControlPlane } from "../../platform/control-plane.ts";
import { run } from "../../testing/run.ts";

type Wrong = Awaited<ReturnType<LocalAdmin["checkLedger"]>>["wrong"][number];

function fakeControlPlane(created = true, wrong: Wrong[] = []): { load: LoadControlPlane; calls: unknown[] } {
  const calls: unknown[] = [];
  const load: LoadControlPlane = (source: ControlPlaneSource) => {
    calls.push(["load", source.configFile]);
    return Promise.resolve({
      startServer: () => Promise.reject(new Error("not this one")),
      watchStop: () => Promise.reject(new Error("not this one")),
      withOperations: () => Promise.reject(new Error("not this one")),
      openLocalAdmin: () =>
        Promise.resolve({
          createUser: (user) => {
            calls.push(["createUser", user]);
            return Promise.resolve({ user: { id: "usr_1", ...user }, created });
          },
          createToken: (request) => {
            calls.push(["createToken", request]);
            return Promise.resolve({ token: "the-token", expiresAt: "2030-01-01T00:00:00.000Z" });
          },
          resetLink: (request) => {
            calls.push(["resetLink", request]);
            return Promise.resolve({ url: "http://127.0.0.1/reset/fli_x", expiresAt: "2026-01-01T01:00:00.000Z" });
          },
          setUpLink: () => {
            calls.push(["setUpLink"]);
            return Promise.resolve({ url: "http://127.0.0.1/set-up/fli_x", expiresAt: "2026-01-02T00:00:00.000Z" });
          },
          rotateSigningKey: (input) => {
            calls.push(["rotateSigningKey", input]);
            return Promise.resolve({ keyId: "sgk_2" });
          },
          addCredits: (input) => {
            calls.push(["addCredits", input]);
            const { amountNanoDollars, note = "" } = input;
            const at = "2026-01-02T00:00:00.000Z";
            const ledgerEntry = {
              id: "led_1",
              at,
              kind: "credit" as const,
              amountNanoDollars,
              callId: null,
              keyId: null,
              agentId: null,
              note,
            };
            return Promise.resolve({ ledgerEntry });
          },
          checkLedger: () => Promise.resolve({ projects: 2, entries: 9, wrong }),
          close: () => {
            calls.push(["close"]);
            return Promise.resolve();
          },
        }),
    });
  };
  return { load, calls };
}

describe("fairlead admin", () => {
  test("create-user creates a platform administrator in the configured installation", async () => {
    const { load, calls } = fakeControlPlane();
    const argv = [
      "admin",
      "create-user",
      "--email",
      "a@b.c",
      "--name",
      "Ann",
      "--platform-admin",
      "--config",
      "c.yaml",
    ];
    const result = await run(argv, { loadControlPlane: load });
    expect(result).toMatchObject({ code: 0, out: "a@b.c (usr_1) created\n" });
    expect(calls).toEqual([
      ["load", "c.yaml"],
      ["createUser", { email: "a@b.c", name: "Ann", platformAdmin: true }],
      ["close"],
    ]);
  });

  test("create-user says when the user already exists", async () => {
    const { load } = fakeControlPlane(false);
    const result = await run(["admin", "create-user", "--email", "a@b.c", "--name", "Ann"], { loadControlPlane: load });
    expect(result.out).toBe("a@b.c (usr_1) already exists\n");
  });

  test("token prints only the token to standard output, valid for twelve hours by default", async () => {
    const { load, calls } = fakeControlPlane();
    const result = await run(["admin", "token", "--email", "a@b.c"], { loadControlPlane: load });
    expect(result).toMatchObject({ code: 0, out: "the-token\n", notes: "valid until 2030-01-01T00:00:00.000Z\n" });
    expect(calls).toContainEqual(["createToken", { email: "a@b.c", ttlSeconds: 43_200 }]);
  });

  test("token --json prints the whole response", async () => {
    const { load } = fakeControlPlane();
    const result = await run(["admin", "token", "--email", "a@b.c", "--ttl", "30m", "--json"], {
      loadControlPlane: load,
    });
    expect(JSON.parse(result.out)).toEqual({ token: "the-token", expiresAt: "2030-01-01T00:00:00.000Z" });
  });

  test("reset-link and set-up-link print only the link to standard output", async () => {
    const { load, calls } = fakeControlPlane();
    const reset = await run(["admin", "reset-link", "a@b.c"], { loadControlPlane: load });
    expect(reset).toMatchObject({ code: 0, out: "http://127.0.0.1/reset/fli_x\n" });
    expect(reset.notes).toContain("single use, valid until 2026-01-01T01:00:00.000Z");
    const setUp = await run(["admin", "set-up-link", "--json"], { loadControlPlane: load });
    expect(JSON.parse(setUp.out)).toMatchObject({ url: "http://127.0.0.1/set-up/fli_x" });
    expect(calls).toContainEqual(["resetLink", { email: "a@b.c" }]);
  });

  test("rotate-signing-key names the new key", async () => {
    const { load, calls } = fakeControlPlane();
    const result = await run(["admin", "rotate-signing-key"], { loadControlPlane: load });
    expect(result).toMatchObject({ code: 0, out: expect.stringMatching(/^tokens are now signed with \S+\n$/) });
    expect(calls).toContainEqual(["rotateSigningKey", { forgetFormer: false }]);
    await run(["admin", "rotate-signing-key", "--forget-former"], { loadControlPlane: load });
    expect(calls).toContainEqual(["rotateSigningKey", { forgetFormer: true }]);
  });

  test("check-ledger reports success, or the inconsistencies with exit code 1", async () => {
    const argv = ["admin", "check-ledger"];
    const right = await run(argv, { loadControlPlane: fakeControlPlane().load });
    expect(right).toMatchObject({ code: 0, out: "2 projects, 9 ledger entries: OK\n" });
    const project = {
      projectId: "prj_1",
      entries: 3,
      balance: 5,
      sum: 4,
      lowest: -1,
      held: 0,
      openHolds: 0,
      chargedTwice: 1,
    };
    const wrong = await run(argv, { loadControlPlane: fakeControlPlane(true, [project]).load });
    expect(wrong).toMatchObject({ code: 1, notes: expect.stringContaining("ledger is inconsistent") as string });
    expect(wrong.out).toContain("prj_1: balance $0.000000005, ledger sum $0.000000004, lowest -$0.000000001");
  });

  test("credits add --local requires no sign-in", async () => {
    const { load, calls } = fakeControlPlane();
    const argv = ["credits", "add", "25", "--project", "prj_1", "--note", "Invoice 17"];
    const result = await run([...argv, "--local", "--config", "c.yaml"], { loadControlPlane: load });
    expect(result).toMatchObject({ code: 0, out: "+$25.00 for prj_1\n" });
    const credit = { projectId: "prj_1", amountNanoDollars: 25_000_000_000, note: "Invoice 17" };
    expect(calls).toEqual([["load", "c.yaml"], ["addCredits", credit], ["close"]]);
    expect(await run([...argv, "--config", "c.yaml"], { loadControlPlane: load })).toMatchObject({ code: 2 });
  });

  test("shows the message and code of an error from the installation", async () => {
    const loadControlPlane: LoadControlPlane = () =>
      Promise.reject(new DomainError("not_found", "There is no user with this email address."));
    const result = await run(["admin", "token", "--email", "a@b.c"], { loadControlPlane });
    expect(result).toMatchObject({
      code: 1,
      notes: "fairlead: There is no user with this email address. (not_found)\n",
    });
  });

  test("token rejects an invalid lifetime as a usage error", async () => {
    const result = await run(["admin", "token", "--email", "a@b.c", "--ttl", "soon"]);
    expect(result).toMatchObject({ code: 2, notes: expect.stringContaining("12h, 30m, 7d") });
  });

  test("token without an email address is a usage error", async () => {
    expect(await run(["admin", "token"])).toMatchObject({ code: 2, notes: expect.stringContaining("--email") });
  });
});
