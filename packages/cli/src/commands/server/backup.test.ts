import type { LocalOperations } from "@fairlead/control-plane/operations";
import { describe, expect, test } from "vitest";
import type { LoadControlPlane } from "../../platform/control-plane.ts";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";

/** A control plane with scripted operations that records their arguments. */
function operations(answers: Partial<Record<keyof LocalOperations, unknown>>): {
  readonly loadControlPlane: LoadControlPlane;
  readonly asked: unknown[];
} {
  const asked: unknown[] = [];
  const fake = Object.fromEntries(
    Object.entries(answers).map(([name, answer]) => [
      name,
      (input?: unknown) => {
        asked.push(input === undefined ? [name] : [name, input]);
        return Promise.resolve(answer);
      },
    ]),
  );
  const loadControlPlane: LoadControlPlane = () =>
    Promise.resolve({
      startServer: () => Promise.reject(new Error("not this one")),
      watchStop: () => Promise.reject(new Error("not this one")),
      openLocalAdmin: () => Promise.reject(new Error("not this one")),
      withOperations: (use) => use(fake as unknown as LocalOperations),
    });
  return { loadControlPlane, asked };
}

const restored = {
  manifest: { createdAt: "2026-03-02T10:11:12.000Z", installationId: "ins_1", program: { version: "0.1.0" } },
  epoch: "epo_2",
  replaced: "/data/replaced-1",
  sessions: 3,
  links: 1,
  recheck: [
    {
      what: "Project keys deleted since the backup, which work again",
      todo: "delete them",
      items: ["key_1 (\u001b[31mred)"],
    },
  ],
};

describe("fairlead backup", () => {
  const report = {
    file: "/b/one.tar.gz",
    bytes: 3_400_000,
    sha256: "ab",
    removed: ["old.tar.gz"],
    alsoKeep: ["/d/master.key"],
  };

  test("names the new file, the removed files, and what to back up separately", async () => {
    const { loadControlPlane, asked } = operations({ backup: report });
    const result = await run(["backup", "--to", "/b/", "--keep", "3"], { loadControlPlane });
    expect(result).toMatchObject({ code: 0 });
    expect(result.out).toContain("/b/one.tar.gz (3.4 MB)\nstore sha256 ab\nremoved old.tar.gz\n");
    expect(result.out).toContain("not included, back up separately: /d/master.key");
    expect(asked).toMatchObject([["backup", { to: "/b/", keep: 3, configFile: null }]]);
  });

  test.each(["0", "-1", "two", "1.5"])("rejects --keep %s", async (keep) => {
    expect(await run(["backup", "--to", "/b/", "--keep", keep])).toMatchObject({ code: 2 });
  });
});

describe("fairlead restore", () => {
  test("lists what to check afterwards, and replaces control characters", async () => {
    const { loadControlPlane, asked } = operations({ restore: restored });
    const { code, out } = await run(["restore", "one.tar.gz", "--yes"], { loadControlPlane });
    expect(code).toBe(0);
    expect(out).toContain(
      "restored; started epoch epo_2\nthe previous store is in /data/replaced-1\n3 sessions and 1 unused links",
    );
    expect(out).toContain("Project keys deleted since the backup, which work again: delete them\n  key_1 (");
    expect(out).not.toContain("\u001b");
    expect(asked).toMatchObject([["restore", { file: "one.tar.gz", dryRun: false }]]);
  });

  test("says that a dry run changed nothing, and when changes since the backup are not known", async () => {
    const { loadControlPlane } = operations({ restore: { ...restored, epoch: null, replaced: null, recheck: null } });
    const { out } = await run(["restore", "one.tar.gz", "--dry-run"], { loadControlPlane });
    expect(out).toContain("nothing was changed");
    expect(out).toContain("are not known here");
  });

  test("does nothing without --yes or a typed yes", async () => {
    const terminal = fakeTerminal({ input: "" });
    expect(await run(["restore", "one.tar.gz"], { terminal })).toMatchObject({
      code: 2,
      notes: expect.stringContaining("add --yes") as string,
    });
    expect(await run(["restore", "one.tar.gz"], { terminal: fakeTerminal({ typed: "no" }) })).toMatchObject({
      code: 2,
    });
    const { loadControlPlane } = operations({ restore: restored });
    const terminalOfYes = fakeTerminal({ typed: "yes" });
    expect(await run(["restore", "one.tar.gz"], { loadControlPlane, terminal: terminalOfYes })).toMatchObject({
      code: 0,
    });
  });
});

describe("fairlead migrate", () => {
  test("--check exits with 1 when migrations are pending, and with 0 otherwise", async () => {
    const due = operations({ migrations: { applied: [], missing: ["0099-new"] } });
    const result = await run(["migrate", "--check"], due);
    expect(result).toMatchObject({ code: 1, out: "0099-new pending\n" });
    const done = operations({ migrations: { applied: [], missing: [] } });
    expect(await run(["migrate", "--check"], done)).toMatchObject({ code: 0 });
    const { loadControlPlane } = operations({ migrate: { applied: [], missing: ["0099-new"] } });
    expect(await run(["migrate"], { loadControlPlane })).toMatchObject({ code: 0, out: "0099-new applied\n" });
  });
});

describe("fairlead doctor", () => {
  test("prints one line per check, and fails when a check fails", async () => {
    const findings = [
      { check: "disk", status: "ok", message: "9 GB free" },
      { check: "master key", status: "fail", message: "put it back" },
    ];
    const result = await run(["doctor"], operations({ doctor: findings }));
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("1 of 2 checks failed") as string });
    expect(result.out).toBe("ok      disk              9 GB free\nfail    master key        put it back\n");
    const warned = operations({ doctor: [{ check: "disk", status: "warn", message: "low" }] });
    expect(await run(["doctor", "--json"], warned)).toMatchObject({ code: 0 });
  });
});

describe("fairlead admin", () => {
  test("log-level sends the level and the duration to the server", async () => {
    const answer = { level: "debug", configured: "info", until: "2026-01-01T00:10:00.000Z" };
    const { loadControlPlane, asked } = operations({ setLogLevel: answer });
    const { out } = await run(["admin", "log-level", "debug", "--for", "10m"], { loadControlPlane });
    expect(asked).toEqual([["setLogLevel", { level: "debug", seconds: 600 }]]);
    expect(out).toBe("the log level is debug until 2026-01-01T00:10:00.000Z, then info\n");
    expect(await run(["admin", "log-level", "loud"])).toMatchObject({ code: 2 });
  });

  test("rotate-master-key says that the old key is kept; forget-sealed does nothing without --yes", async () => {
    const rotation = { keyId: "new1", formerKeyId: "old1", resealed: { "provider.sealed_credential": 2 } };
    const rotated = await run(["admin", "rotate-master-key"], operations({ rotateMasterKey: rotation }));
    expect(rotated.out).toContain("provider.sealed_credential: 2 re-encrypted");
    expect(rotated.out).toContain("the old key, old1, is kept");
    expect(await run(["admin", "forget-sealed"])).toMatchObject({ code: 2 });
    const gone = { keyId: "k", providers: [{ projectId: "prj_1", name: "openai" }], secrets: [] };
    const { out } = await run(["admin", "forget-sealed", "--yes"], operations({ forgetSealed: gone }));
    expect(out).toContain("set the credential of provider openai in prj_1 again");
  });
});
