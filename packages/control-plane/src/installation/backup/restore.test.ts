import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readMasterKey } from "../../access/auth/sealing/master-key.ts";
import { aesSealer } from "../../access/auth/sealing/sealer.ts";
import { placedAgent } from "../../fleet/agents/life/placed-agent.fixture.ts";
import { AgentStore } from "../../fleet/agents/records/agent-store.ts";
import { SecretService } from "../../fleet/secrets/secret-service.ts";
import { insertProject, insertUser } from "../../testing.fixture.ts";
import { openNewAdmin } from "../admin/new-installation.fixture.ts";
import { Running } from "../admin/running.fixture.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { LaterRelease } from "../db/migrations/later-migration.fixture.ts";
import { MIGRATIONS } from "../db/migrations/migrate.ts";
import { type OpenedDatabase, openDatabase } from "../db/open.ts";
import { openLocalOperations } from "../operations/local-operations.ts";
import { unpackBackup } from "./backup-file.ts";

const ann = { email: "ann@example.org", name: "Ann", platformAdmin: true };
const bob = { email: "bob@example.org", name: "Bob", platformAdmin: false };
const onProgress = (): void => undefined;
/** What a store of this version has run. */
const BEFORE = MIGRATIONS.map(({ name }) => name);
let dir: string;
let config: Config;
let backups: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-restore-"));
  config = loadConfig({ env: { FAIRLEAD_DATA_DIR: join(dir, "data") } });
  backups = `${join(dir, "backups")}/`;
});
const later = new LaterRelease();
afterEach(() => {
  later.end();
  rmSync(dir, { recursive: true });
});

const operations = (): ReturnType<typeof openLocalOperations> => openLocalOperations(config);
const backup = (): ReturnType<ReturnType<typeof openLocalOperations>["backup"]> =>
  operations().backup({ to: backups, keep: null, configFile: null, onProgress });
const restore = (file: string, dryRun = false): ReturnType<ReturnType<typeof openLocalOperations>["restore"]> =>
  operations().restore({ file, dryRun, onProgress });

async function asOperator<T>(work: (admin: Awaited<ReturnType<typeof openNewAdmin>>) => Promise<T>): Promise<T> {
  const admin = await openNewAdmin(config);
  try {
    return await work(admin);
  } finally {
    await admin.close();
  }
}

async function inStore(work: (store: OpenedDatabase) => Promise<void>): Promise<void> {
  const store = openDatabase({ file: join(config.dataDir, "fairlead.db") });
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

async function read(): Promise<{ epoch: string; users: string[]; sessions: number; actions: string[] }> {
  const store = openDatabase({ file: join(config.dataDir, "fairlead.db") });
  const { db } = store;
  const { epoch } = await db.selectFrom("installation").select("epoch").executeTakeFirstOrThrow();
  const users = await db.selectFrom("user").select("email").orderBy("email").execute();
  const sessions = await db.selectFrom("session").select("id").execute();
  const events = await db.selectFrom("audit_event").select("action").orderBy("id").execute();
  await store.close();
  return {
    epoch,
    users: users.map(({ email }) => email),
    sessions: sessions.length,
    actions: events.map(({ action }) => action),
  };
}

describe("a restored backup", () => {
  test("is the store of that time in a new epoch, ends every session, and keeps the previous store aside", async () => {
    await asOperator((admin) => admin.createUser(ann));
    await asOperator((admin) => admin.createToken({ email: ann.email }));
    const { file } = await backup();
    const before = await read();
    await asOperator((admin) => admin.createUser(bob));
    const report = await restore(file);
    const after = await read();
    expect(before).toMatchObject({ users: [ann.email], sessions: 1 });
    expect(after).toMatchObject({ users: [ann.email], sessions: 0, epoch: report.epoch });
    expect(after.epoch).not.toBe(before.epoch);
    expect(after.actions.at(-1)).toBe("admin.restore");
    expect(report).toMatchObject({ sessions: 1 });
    expect(report.recheck).toMatchObject([{ what: expect.stringContaining("Users created since") as string }]);
    expect(readdirSync(report.replaced ?? "")).toEqual(["fairlead.db"]);
    expect(statSync(join(config.dataDir, "fairlead.db")).mode & 0o777).toBe(0o600);
    await asOperator((admin) => admin.createUser(bob));
  });

  test("restores the secrets of agents as sealed, and lists the secrets and agents that have changed since", async () => {
    await asOperator((admin) => admin.createUser(ann));
    const owner = { id: "agt_1", node: { id: "nod_1", directSecrets: false, sealingKey: null } };
    const agentSecrets = ({ db }: OpenedDatabase): SecretService =>
      new SecretService({
        kind: "agent",
        db,
        sealer: aesSealer(readMasterKey(config.masterKeyFile)),
        clock: systemClock,
      });
    const put = (store: OpenedDatabase, value: string) =>
      store.db.transaction().execute((within) => agentSecrets(store).put(within, owner, { name: "TOKEN", value }));
    await inStore(async (store) => {
      await insertUser(store, "usr_1");
      await insertProject(store, "prj_1", "usr_1");
      await new AgentStore(store.db).insert(placedAgent({ id: "agt_1", projectId: "prj_1", nodeId: "nod_1" }));
      await put(store, "the earlier one");
    });
    const { file } = await backup();
    await inStore(async (store) => {
      await put(store, "the later one");
      await new AgentStore(store.db).insert(placedAgent({ id: "agt_2", projectId: "prj_1", nodeId: "nod_1" }));
    });
    const { recheck } = await restore(file);
    expect(recheck).toMatchObject([
      { what: expect.stringMatching(/^Agents created since/), items: ["agt_2 (agt_2) of prj_1"] },
      { what: expect.stringMatching(/^Agent secrets/), items: ["agt_1 TOKEN"] },
    ]);
    await inStore(async ({ db }) => {
      const row = await db.selectFrom("agent_secret").selectAll().executeTakeFirstOrThrow();
      const sealer = aesSealer(readMasterKey(config.masterKeyFile));
      const plain = await sealer.open(row.sealed, "agent secret agt_1 TOKEN");
      expect([row.version, Buffer.from(plain).toString()]).toEqual([1, "the earlier one"]);
    });
  });

  test("of a running server contains everything that the server had acknowledged", async () => {
    const server = await Running.start(config);
    await asOperator((admin) => admin.createUser(ann));
    const { file } = await backup();
    await expect(restore(file)).rejects.toThrow(/A server is running on .*Stop it first/);
    await server.stop();
    await restore(file);
    expect(await read()).toMatchObject({ users: [ann.email] });
    expect(readdirSync(join(config.dataDir, "snapshots"))).toEqual([]);
  });

  test("changes nothing in a dry run, and leaves nothing behind", async () => {
    await asOperator((admin) => admin.createUser(ann));
    const { file } = await backup();
    await asOperator((admin) => admin.createUser(bob));
    const [before, folder] = [await read(), readdirSync(config.dataDir)];
    // As a restore that was killed leaves it.
    mkdirSync(join(config.dataDir, ".restore-killed"));
    expect(await restore(file, true)).toMatchObject({ epoch: null, replaced: null });
    expect(await read()).toEqual(before);
    expect(readdirSync(config.dataDir)).toEqual(folder);
  });

  test("starts an installation whose store is lost", async () => {
    await asOperator((admin) => admin.createUser(ann));
    const { file } = await backup();
    for (const name of readdirSync(config.dataDir))
      if (name.startsWith("fairlead.db")) rmSync(join(config.dataDir, name));
    expect(await restore(file)).toMatchObject({ replaced: null, recheck: null });
    expect(await read()).toMatchObject({ users: [ann.email] });
  });

  test("replaces a damaged store, which is kept unchanged", async () => {
    await asOperator((admin) => admin.createUser(ann));
    const { file } = await backup();
    writeFileSync(join(config.dataDir, "fairlead.db"), "no store at all, and long enough to be looked at".repeat(100));
    const report = await restore(file);
    expect(report.recheck).toBeNull();
    expect(readdirSync(report.replaced ?? "")).toContain("fairlead.db");
    expect(await read()).toMatchObject({ users: [ann.email] });
  });

  test("is rejected with another master key, and without one", async () => {
    await asOperator((admin) => admin.createUser(ann));
    const { file } = await backup();
    writeFileSync(config.masterKeyFile, `${Buffer.alloc(32, 7).toString("base64")}\n`);
    await expect(restore(file)).rejects.toThrow(/sealed with the master key \w+, but .* contains \w+/);
    rmSync(config.masterKeyFile);
    await expect(restore(file)).rejects.toThrow(/master key cannot be read/);
  });
});

test.runIf(process.getuid?.() === 0)(
  "backup and restore by a user other than the server's are rejected, because the server could not open the files",
  async () => {
    await asOperator((admin) => admin.createUser(ann));
    const { file } = await backup();
    chownSync(config.dataDir, 12_345, 12_345);
    await expect(restore(file)).rejects.toThrow(/belongs to another user.*sudo -u '#12345'/);
    await expect(backup()).rejects.toThrow(/belongs to another user/);
  },
);

test("a damaged store is reported with a clear message, and is never backed up", async () => {
  await asOperator((admin) => admin.createUser(ann));
  writeFileSync(join(config.dataDir, "fairlead.db"), "x".repeat(8192));
  await expect(backup()).rejects.toMatchObject({ name: "StartError" });
  expect(existsSync(backups)).toBe(false);
});

test("a backup folder keeps the configured number of newest backups", async () => {
  await asOperator((admin) => admin.createUser(ann));
  const { file } = await backup();
  const older = file.replace(/\d{8}T\d{6}Z/, "20200101T000000Z");
  writeFileSync(older, "an old one");
  const report = await operations().backup({ to: backups, keep: 1, configFile: null, onProgress });
  expect(existsSync(older)).toBe(false);
  expect(existsSync(report.file)).toBe(true);
});

test("a backup of an earlier version is upgraded to this version during the restore", async () => {
  await asOperator(async () => undefined);
  const { file } = await backup();
  later.begin();
  await asOperator((admin) => admin.createUser(ann));
  await restore(file);
  expect(await operations().migrations()).toMatchObject({ applied: [...BEFORE, LaterRelease.step], missing: [] });
  expect(await read()).toMatchObject({ users: [] });
});

describe("an upgrade", () => {
  beforeEach(() => asOperator((admin) => admin.createUser(ann)));

  test("first creates a backup, with which the earlier version can continue", async () => {
    later.begin();
    await asOperator((admin) => admin.createUser(bob));
    const folder = join(config.dataDir, "backups");
    const [name = ""] = readdirSync(folder);
    const { manifest } = await unpackBackup({
      file: join(folder, name),
      folder: mkdtempSync(join(dir, "un-")),
      onProgress,
    });
    expect(manifest.migrations).toEqual(BEFORE);
    later.end();
    await expect(asOperator((admin) => admin.createUser(bob))).rejects.toThrow(/newer version.*9999-later/);
    await restore(join(folder, name));
    expect(await read()).toMatchObject({ users: [ann.email] });
    await asOperator((admin) => admin.createUser(bob));
  });

  test("creates no backup when the settings disable it", async () => {
    const dataDir = config.dataDir;
    config = loadConfig({ env: { FAIRLEAD_DATA_DIR: dataDir, FAIRLEAD_DATABASE_BACKUP_BEFORE_MIGRATION: "false" } });
    later.begin();
    await asOperator((admin) => admin.createUser(bob));
    expect(existsSync(join(dataDir, "backups"))).toBe(false);
  });

  test("is reported before it is done", async () => {
    expect(await operations().migrations()).toMatchObject({ missing: [] });
    later.begin();
    expect(await operations().migrations()).toMatchObject({ missing: [LaterRelease.step] });
  });

  test("is preceded by a backup, even when it then fails", async () => {
    later.begin(() => Promise.reject(new Error("a broken step")));
    await expect(asOperator((admin) => admin.createUser(bob))).rejects.toThrow("a broken step");
    const [name = ""] = readdirSync(join(config.dataDir, "backups"));
    expect(name).toMatch(/^fairlead-\w{8}-\d{8}T\d{6}Z\.tar\.gz$/);
    later.end();
    expect(await read()).toMatchObject({ users: [ann.email] });
  });
});
