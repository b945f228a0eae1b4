import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { STORES } from "../../testing.fixture.ts";
import { openLocalAdmin } from "../admin/local-admin.ts";
import { openNewAdmin } from "../admin/new-installation.fixture.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { openDatabase } from "../db/open.ts";
import { openLocalOperations } from "../operations/local-operations.ts";
import { packBackup, unpackBackup } from "./backup-file.ts";

const ann = { email: "ann@example.org", name: "Ann", platformAdmin: true };
const bob = { email: "bob@example.org", name: "Bob", platformAdmin: false };
const onProgress = (): void => undefined;

const postgres = STORES.find(({ name }) => name === "PostgreSQL");

describe.skipIf(postgres === undefined)("a backup of a PostgreSQL store", () => {
  let dir: string;
  let config: Config;
  let url: string;
  let close: () => Promise<void>;
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), "fairlead-pg-"));
    const shared = await postgres?.openShared(dir);
    if (shared === undefined || !("url" in shared.location)) throw new Error("this is no PostgreSQL");
    ({ url } = shared.location);
    close = () => shared.close();
    config = loadConfig({ env: { FAIRLEAD_DATA_DIR: join(dir, "data"), FAIRLEAD_DATABASE_URL: url } });
  });
  afterEach(async () => {
    await close();
    rmSync(dir, { recursive: true });
  });

  async function asOperator(
    work: (admin: Awaited<ReturnType<typeof openLocalAdmin>>) => Promise<unknown>,
  ): Promise<void> {
    const admin = await openNewAdmin(config);
    await work(admin);
    await admin.close();
  }

  async function read(): Promise<{ epoch: string; users: string[]; sessions: number }> {
    const store = openDatabase({ url });
    const { epoch } = await store.db.selectFrom("installation").select("epoch").executeTakeFirstOrThrow();
    const users = await store.db.selectFrom("user").select("email").orderBy("email").execute();
    const sessions = await store.db.selectFrom("session").select("id").execute();
    await store.close();
    return { epoch, users: users.map(({ email }) => email), sessions: sessions.length };
  }

  test("is made by pg_dump, and is restored in a new epoch with the previous data kept aside", async () => {
    await asOperator((admin) => admin.createUser(ann));
    await asOperator((admin) => admin.createToken({ email: ann.email }));
    const before = await read();
    const operations = openLocalOperations(config);
    const { file } = await operations.backup({ to: `${dir}/`, keep: 3, configFile: null, onProgress });
    await asOperator((admin) => admin.createUser(bob));
    const report = await operations.restore({ file, dryRun: false, onProgress });
    expect(await read()).toEqual({ epoch: report.epoch, users: [ann.email], sessions: 0 });
    expect(report.epoch).not.toBe(before.epoch);
    expect(readdirSync(report.replaced ?? "")).toEqual(["store.dump"]);
    expect(report.recheck).toMatchObject([{ items: [expect.stringContaining(bob.email) as string] }]);
    await asOperator((admin) => admin.createUser(bob));
  });

  test("made by a newer version is rejected before anything is changed", async () => {
    await asOperator((admin) => admin.createUser(ann));
    const operations = openLocalOperations(config);
    const { file } = await operations.backup({ to: `${dir}/`, keep: null, configFile: null, onProgress });
    const folder = mkdtempSync(join(dir, "unpacked-"));
    const { manifest, storeFile } = await unpackBackup({ file, folder, onProgress });
    const newer = { ...manifest, migrations: [...manifest.migrations, "9999-later"] };
    await packBackup({ manifest: newer, storeFile, target: file, onProgress });
    const before = await read();
    await expect(operations.restore({ file, dryRun: false, onProgress })).rejects.toThrow(/newer version.*9999-later/);
    expect(await read()).toEqual(before);
    expect(readdirSync(config.dataDir)).not.toContain("restore.pending");
  });

  test("whose restore was interrupted keeps servers out until the restore is repeated", async () => {
    await asOperator((admin) => admin.createUser(ann));
    const operations = openLocalOperations(config);
    const { file } = await operations.backup({ to: `${dir}/`, keep: null, configFile: null, onProgress });
    writeFileSync(join(config.dataDir, "restore.pending"), "as a crash leaves it\n");
    await expect(openLocalAdmin(config)).rejects.toThrow(/restore was interrupted.*again to finish it/);
    await operations.restore({ file, dryRun: false, onProgress });
    await asOperator((admin) => admin.createUser(bob));
  });
});
