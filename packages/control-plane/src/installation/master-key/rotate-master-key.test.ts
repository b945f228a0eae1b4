import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AnswerService } from "../../access/answers/answer-service.ts";
import { AnswerStore } from "../../access/answers/answer-store.ts";
import { openKeyRing } from "../../access/auth/sealing/key-ring.ts";
import { KeyRingStore } from "../../access/auth/sealing/key-ring-store.ts";
import { createMasterKey, readMasterKey, settleMasterKey } from "../../access/auth/sealing/master-key.ts";
import { aesSealer } from "../../access/auth/sealing/sealer.ts";
import { placedAgent } from "../../fleet/agents/life/placed-agent.fixture.ts";
import { AgentStore } from "../../fleet/agents/records/agent-store.ts";
import { MachineSecrets } from "../../fleet/machines/machine-secrets.ts";
import { MachineStore } from "../../fleet/machines/machine-store.ts";
import { SecretService } from "../../fleet/secrets/secret-service.ts";
import { ProviderCredentials } from "../../models/providers/provider-credentials.ts";
import { STORES } from "../../testing.fixture.ts";
import { openLocalAdmin } from "../admin/local-admin.ts";
import { createStore } from "../admin/new-installation.fixture.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { dialectOf } from "../db/dialect.ts";
import { ensureInstallation } from "../db/installation-store.ts";
import { migrate } from "../db/migrations/migrate.ts";
import { type OpenedDatabase, openDatabase } from "../db/open.ts";
import { forgetSealed, type RotationStep, rotateMasterKey } from "./rotate-master-key.ts";
import { SEALED_COLUMNS } from "./sealed-columns.ts";

const clock = new TestClock();
const ids = countingIds();
const PROVIDER = { projectId: "prj_1", name: "openai", baseUrl: "https://api.example.org/v1" };
const CALL = { projectId: "prj_1", callerId: "key_1", key: 'it\'s "ours" ☂', fingerprint: "f" };
const ANSWER = { status: 200, headers: {}, body: Buffer.from("an answer") };

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-rotate-"));
  file = join(dir, "master.key");
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Everything that is ever sealed, by the services that seal it. */
async function fill({ db }: OpenedDatabase): Promise<void> {
  createMasterKey(file);
  const sealer = aesSealer(readMasterKey(file));
  await ensureInstallation(db, { id: "ins_1", epoch: "epo_1", createdAt: 1 });
  const ring = await openKeyRing({ store: new KeyRingStore(db), sealer, clock, ids });
  await ring.rotate();
  await sql`insert into "user" (id, name, email, "emailVerified", "createdAt", "updatedAt")
    values ('usr_1', 'Ann', 'ann@example.org', 1, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')`.execute(db);
  await sql`insert into project (id, user_id, name, created_at, updated_at) values ('prj_1', 'usr_1', 'One', 1, 1)`.execute(
    db,
  );
  const node = { public_ip: "", operating_system: "", status_message: "", daemon_version: "", direct_secrets: 0 };
  await db
    .insertInto("node")
    .values({
      ...node,
      id: "nod_1",
      project_id: "prj_1",
      user_id: "usr_1",
      name: "Box",
      identifier: "box",
      plan_id: "byo",
      status: "active",
      status_since: 1,
      connectors: "[]",
      engine_config: "{}",
      conditions: "[]",
      restarts: 0,
      created_at: 1,
    } as never)
    .execute();
  await new AgentStore(db).insert(placedAgent({ id: "agt_1", projectId: "prj_1", nodeId: "nod_1" }));
  for (const [kind, id] of [
    ["node", "nod_1"],
    ["agent", "agt_1"],
  ] as const) {
    const secrets = new SecretService({ kind, db, sealer, clock });
    const owner = { id, node: { id: "nod_1", directSecrets: false, sealingKey: null } };
    const secret = { name: "TOKEN", value: `${kind} s3cret` };
    await db.transaction().execute((transaction) => secrets.put(transaction, owner, secret));
  }
  await fillMachine(db, sealer);
  const sealed = await new ProviderCredentials(sealer).seal(PROVIDER, "sk-live");
  await sql`insert into provider (project_id, name, user_id, base_url, settings, sealed_credential, created_at, updated_at)
    values ('prj_1', 'openai', 'usr_1', ${PROVIDER.baseUrl}, '{}', ${sealed}, 1, 1)`.execute(db);
  const { claim } = await answers(db, sealer).begin(CALL);
  await claim?.keep(ANSWER);
}

async function fillMachine(db: OpenedDatabase["db"], sealer: ReturnType<typeof aesSealer>): Promise<void> {
  const secrets = new MachineSecrets(sealer);
  await new MachineStore(db).insert({
    nodeId: "nod_1",
    projectId: "prj_1",
    provider: "hetzner",
    type: "cx23",
    name: "box-1",
    step: "booting",
    locations: ["fsn1"],
    machineId: "1",
    sealedToken: await secrets.sealToken("nod_1", "provider-token"),
    sealedBootstrap: await secrets.sealBootstrap("nod_1", "flb_token"),
    bootstrapExpiresAt: 1,
    attemptedAt: null,
    deadlineAt: 1,
  });
}

function answers(db: OpenedDatabase["db"], sealer: ReturnType<typeof aesSealer>): AnswerService {
  const store = new AnswerStore(db);
  return new AnswerService({ answers: store, writes: store, sealer, clock });
}

/** Reads all of it back by the key in the file. */
async function readBack({ db }: OpenedDatabase): Promise<unknown> {
  const { master_key_id: id } = await db
    .selectFrom("signing_key")
    .select("master_key_id")
    .where("retired_at", "is", null)
    .executeTakeFirstOrThrow();
  const sealer = aesSealer(settleMasterKey(file, id));
  await openKeyRing({ store: new KeyRingStore(db), sealer, clock, ids });
  const provider = await db.selectFrom("provider").select("sealed_credential").executeTakeFirstOrThrow();
  const open = async (kind: "node" | "agent", context: string): Promise<string> => {
    const { sealed } = await db.selectFrom(`${kind}_secret`).select("sealed").executeTakeFirstOrThrow();
    return Buffer.from(await sealer.open(sealed, context)).toString();
  };
  const credential = new ProviderCredentials(sealer);
  const { kept } = await answers(db, sealer).begin(CALL);
  const machine = await new MachineStore(db).find("nod_1");
  const machineSecrets = new MachineSecrets(sealer);
  return {
    token: machine && (await machineSecrets.openToken(machine)),
    bootstrap: await machineSecrets.openBootstrap("nod_1", machine?.sealedBootstrap ?? ""),
    credential: await credential.open({ ...PROVIDER, sealedCredential: provider.sealed_credential } as never),
    nodeSecret: await open("node", "node secret nod_1 TOKEN"),
    agentSecret: await open("agent", "agent secret agt_1 TOKEN"),
    answer: kept?.body.toString(),
  };
}
const WHOLE = {
  token: "provider-token",
  bootstrap: "flb_token",
  credential: "sk-live",
  nodeSecret: "node s3cret",
  agentSecret: "agent s3cret",
  answer: "an answer",
};

/** Every text in the store that this key has sealed, as `table.column`. */
async function sealedTexts({ db }: OpenedDatabase, keyId: string): Promise<string[]> {
  const found = new Set<string>();
  for (const { name: table, columns, schema } of await db.introspection.getTables()) {
    for (const { name: column } of columns) {
      const text = sql`cast(${sql.ref(column)} as text)`;
      const from = schema === undefined ? sql.table(table) : sql.id(schema, table);
      const { rows } = await sql`select 1 from ${from} where ${text} like ${`v1.${keyId}.%`} limit 1`.execute(db);
      if (rows.length > 0) found.add(`${table}.${column}`);
    }
  }
  return [...found].toSorted();
}

describe.each(STORES)("rotating the master key on $name", ({ open }) => {
  let store: OpenedDatabase;
  beforeEach(async () => {
    store = await open();
    await fill(store);
  });
  afterEach(() => store.close());

  test("reseals everything, keeps the former key beside the new one, and leaves everything readable", async () => {
    const before = readMasterKey(file);
    const report = await rotateMasterKey({ db: store.db, masterKeyFile: file, clock, ids });
    expect(report).toMatchObject({ formerKeyId: before.id, keyId: readMasterKey(file).id });
    expect(report.resealed).toEqual({
      "signing_key.sealed_jwk": 2,
      "machine.sealed_token": 1,
      "machine.sealed_bootstrap": 1,
      "provider.sealed_credential": 1,
      "node_secret.sealed": 1,
      "agent_secret.sealed": 1,
      "kept_answer.sealed": 1,
    });
    expect(await readBack(store)).toEqual(WHOLE);
    expect(readdirSync(dir).toSorted()).toEqual(["master.key", `master.key.${before.id}`]);
    expect(readMasterKey(`${file}.${before.id}`)).toEqual(before);
  });

  test("covers every column that the key has sealed in a store that uses all of them", async () => {
    if (dialectOf(store.db) === "postgres") return;
    const { id } = readMasterKey(file);
    const listed = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`).toSorted();
    expect(await sealedTexts(store, id)).toEqual(listed);
    await rotateMasterKey({ db: store.db, masterKeyFile: file, clock, ids });
    expect(await sealedTexts(store, id)).toEqual([]);
  });

  test("is refused with another key, and changes nothing when one secret cannot be opened", async () => {
    const key = readFileSync(file);
    await sql`update node_secret set sealed = ${`v1.${"0".repeat(16)}.AAAA.AAAA`}`.execute(store.db);
    await expect(rotateMasterKey({ db: store.db, masterKeyFile: file, clock, ids })).rejects.toThrow(
      /sealed with key 0/,
    );
    settleMasterKey(file, readMasterKey(file).id);
    expect(readFileSync(file).equals(key)).toBe(true);
    rmSync(file);
    createMasterKey(file);
    await expect(rotateMasterKey({ db: store.db, masterKeyFile: file, clock, ids })).rejects.toThrow(
      /Restore the correct key/,
    );
  });

  test("replaces a lost key with a new one, and lists what the lost key had sealed", async () => {
    await expect(forgetSealed({ db: store.db, masterKeyFile: file, clock, ids })).rejects.toThrow(/nothing is lost/);
    rmSync(file);
    const gone = await forgetSealed({ db: store.db, masterKeyFile: file, clock, ids });
    expect(gone).toMatchObject({
      keyId: readMasterKey(file).id,
      providers: [{ projectId: "prj_1", name: "openai" }],
      secrets: [
        { ownerId: "nod_1", name: "TOKEN" },
        { ownerId: "agt_1", name: "TOKEN" },
        { ownerId: "nod_1", name: "providerToken" },
      ],
    });
    const ring = await openKeyRing({
      store: new KeyRingStore(store.db),
      sealer: aesSealer(readMasterKey(file)),
      clock,
      ids,
    });
    // Tokens that the lost keys signed stay good until they run out.
    expect(ring.publicJwks().keys).toHaveLength(3);
    const report = await rotateMasterKey({ db: store.db, masterKeyFile: file, clock, ids });
    expect(report.resealed).toMatchObject({
      "signing_key.sealed_jwk": 1,
      "node_secret.sealed": 0,
      "agent_secret.sealed": 0,
    });
  });
});

/** `v1.` is said in one place, and every caller of `seal` is known here: a new one belongs into the list, or is a cookie. */
test("only the known modules seal", () => {
  const source = join(import.meta.dirname, "../..");
  const sealing = readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !/\.(test|contract|fixture)\.ts$/.test(name))
    .filter((name) => /sealer\.seal\(/.test(readFileSync(join(source, name), "utf8")));
  expect(sealing.toSorted()).toEqual([
    "access/answers/answer-service.ts",
    "access/auth/sealing/key-ring.ts",
    "fleet/machines/machine-secrets.ts",
    "fleet/secrets/secret-service.ts",
    "models/providers/provider-credentials.ts",
    // A cookie, which outlives no rotation.
    "people/sign-in/oidc/oidc-service.ts",
  ]);
});

describe("a rotation that is killed", () => {
  const STEPS: readonly RotationStep[] = ["made", "sealed", "committed", "switched"];

  test.each(STEPS)("at the step %s leaves everything readable, and can be repeated", async (step) => {
    const storeFile = join(dir, "fairlead.db");
    const first = openDatabase({ file: storeFile });
    await migrate(first.db, { clock });
    await fill(first);
    await first.close();
    const program = join(import.meta.dirname, "rotation-program.fixture.ts");
    const args = ["--conditions", "fairlead-source", program, storeFile, file, step];
    const { signal, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect({ signal, stderr }).toMatchObject({ signal: "SIGKILL" });
    const store = openDatabase({ file: storeFile });
    expect(await readBack(store)).toEqual(WHOLE);
    expect(existsSync(`${file}.next`)).toBe(false);
    await rotateMasterKey({ db: store.db, masterKeyFile: file, clock, ids });
    expect(await readBack(store)).toEqual(WHOLE);
    await store.close();
  });

  test("is resolved the next time the installation is opened", async () => {
    const config: Config = loadConfig({ env: { FAIRLEAD_DATA_DIR: dir, FAIRLEAD_MASTER_KEY_FILE: file } });
    await createStore(config);
    const before = readMasterKey(file).id;
    createMasterKey(`${file}.next`);
    await (await openLocalAdmin(config)).close();
    expect(readMasterKey(file).id).toBe(before);
    expect(existsSync(`${file}.next`)).toBe(false);
    writeFileSync(`${file}.next`, "no key");
    await expect(openLocalAdmin(config)).rejects.toThrow(/mode|chmod|does not hold/);
  });
});
