import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeStatus } from "@fairlead/protocol/resources";
import { freePorts } from "@fairlead/protocol/testing/free-ports";
import { systemClock } from "@fairlead/protocol/values/clock";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startServer } from "../../server.ts";
import { createStore } from "../admin/new-installation.fixture.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { type OpenedDatabase, openDatabase } from "../db/open.ts";
import { storeLocation } from "../db/store-location.ts";
import { type DoctorFinding, examineServer } from "./doctor.ts";
import type { ServerSurroundings } from "./server-check.ts";

let dir: string;
let config: Config;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-doctor-"));
  config = configured();
});
afterEach(() => rmSync(dir, { recursive: true }));

function configured(env: Readonly<Record<string, string>> = {}): Config {
  return loadConfig({
    env: {
      FAIRLEAD_DATA_DIR: join(dir, "data"),
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
      ...env,
    },
  });
}

async function statuses(): Promise<Readonly<Record<string, DoctorFinding["status"]>>> {
  return Object.fromEntries((await examineServer(config, systemClock)).map(({ check, status }) => [check, status]));
}

async function message(check: string, surroundings?: ServerSurroundings): Promise<string> {
  return (
    (await examineServer(config, systemClock, surroundings)).find((finding) => finding.check === check)?.message ?? ""
  );
}

async function onStore(work: (db: OpenedDatabase["db"]) => Promise<unknown>): Promise<void> {
  const opened = openDatabase(storeLocation(config));
  await work(opened.db);
  await opened.close();
}

const condition = (type: string, status: string, said: string): object => ({
  type,
  status,
  reason: "",
  message: said,
  since: "2026-01-01T00:00:00.000Z",
});

async function addNode(
  identifier: string,
  { conditions, ...values }: { status: NodeStatus; status_message?: string; conditions: readonly object[] },
): Promise<void> {
  await onStore(async (db) => {
    await sql`insert into "user" (id, name, email, "emailVerified", "createdAt", "updatedAt")
      values ('usr_1', 'Ann', 'ann@example.org', 1, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')
      on conflict do nothing`.execute(db);
    await sql`insert into project (id, user_id, name, created_at, updated_at) values ('prj_1', 'usr_1', 'One', 1, 1)
      on conflict do nothing`.execute(db);
    const empty = { public_ip: "", operating_system: "", status_message: "", daemon_version: "", direct_secrets: 0 };
    const owner = {
      project_id: "prj_1",
      user_id: "usr_1",
      plan_id: "byo",
      status_since: 1,
      restarts: 0,
      created_at: 1,
    };
    const text = { connectors: "[]", engine_config: "{}", conditions: JSON.stringify(conditions) };
    const row = { ...empty, ...owner, ...text, ...values, id: `nod_${identifier}`, name: identifier, identifier };
    await db
      .insertInto("node")
      .values(row as never)
      .execute();
  });
}

describe("the doctor", () => {
  test("fails while the server is down, and shows its last log line and the command that starts it", async () => {
    await createStore(config);
    const nowhere = { unitFile: join(dir, "no.service") };
    expect(await statuses()).toMatchObject({ server: "fail" });
    expect(await message("server", { ...nowhere, configFile: null })).toBe(
      "not running; no log found\nStart it with: fairlead server",
    );
    const line = JSON.stringify({
      level: 60,
      time: "2026-01-02T03:04:05Z",
      msg: "gave up",
      err: { message: "no disk" },
    });
    writeFileSync(join(config.dataDir, "server.log"), `earlier\n${line}\n`);
    expect(await message("server", { ...nowhere, configFile: "/etc/f.yaml" })).toBe(
      "not running; last line of its log: 2026-01-02T03:04:05Z gave up: no disk\nStart it with: fairlead server --config /etc/f.yaml",
    );
    writeFileSync(join(config.dataDir, "server.log"), `${"x".repeat(100_000)}\n`);
    expect((await message("server", { ...nowhere, configFile: null })).length).toBeLessThan(500);
    const unitFile = join(dir, "fairlead-control-plane.service");
    writeFileSync(unitFile, "");
    expect(await message("server", { unitFile, configFile: null })).toContain("systemctl start fairlead-control-plane");
  });

  test("names unreachable nodes, and nodes with a disk or clock problem", async () => {
    await createStore(config);
    await addNode("box", { status: "active", conditions: [condition("disk", "warning", "97 % full")] });
    await addNode("attic", { status: "unreachable", status_message: "no heartbeat since 03:00", conditions: [] });
    await addNode("cellar", { status: "active", conditions: [condition("clock", "problem", "is 90 s slow")] });
    expect(await message("nodes")).toBe("known once the server is running");
    const running = await startServer(config);
    expect(await statuses()).toMatchObject({
      server: "ok",
      nodes: "warn",
      "disks of nodes": "warn",
      "clocks of nodes": "warn",
    });
    expect(await message("nodes")).toMatch(/^1 of 3 nodes unavailable: attic is unreachable \(no heartbeat/);
    expect(await message("disks of nodes")).toBe("box: 97 % full");
    expect(await message("clocks of nodes")).toBe("cellar: is 90 s slow");
    await running.close();
  });

  test("finds values sealed with another master key", async () => {
    await createStore(config);
    expect(await message("secrets")).toMatch(/^all \d+ sealed values can be opened with this master key$/);
    await onStore((db) =>
      db
        .updateTable("signing_key")
        .set({ sealed_jwk: `v1.${"0".repeat(16)}.AAAA.AAAA` })
        .execute(),
    );
    expect(await message("secrets")).toMatch(/sealed with another master key: \d+ in signing_key.sealed_jwk/);
  });

  test("checks providers, and reports which of them cannot be used and why", async () => {
    const upstream = createServer((request, response) =>
      response.writeHead(request.headers.authorization === "Bearer right" ? 200 : 401).end('{"data":[{"id":"m"}]}'),
    );
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
    const provider = (credential: string): Readonly<Record<string, string>> => ({
      FAIRLEAD_PROVIDERS_PLATFORM: JSON.stringify([
        { name: "acme", baseUrl: url, credentialVariable: "ACME", discovery: true },
      ]),
      ACME: credential,
    });
    config = configured(provider("right"));
    await createStore(config);
    expect(await message("providers")).toBe("all 1 respond");
    config = configured(provider("wrong"));
    expect(await statuses()).toMatchObject({ providers: "warn" });
    expect(await message("providers")).toMatch(/^1 of 1 cannot be used: acme: /);
    upstream.close();
  });

  test("finds no problem in a stopped installation", async () => {
    await createStore(config);
    const platform = await freePorts(2);
    config = configured({
      FAIRLEAD_SERVER_PLATFORM_PORT: `${platform}`,
      FAIRLEAD_SERVER_INFERENCE_PORT: `${platform + 1}`,
    });
    expect(await statuses()).toMatchObject({
      settings: "ok",
      "data folder": "ok",
      "store integrity": "ok",
      "store version": "ok",
      "master key": "ok",
      ledger: "ok",
      "platform host": "ok",
      "inference host": "ok",
    });
  });

  test("checks a running installation at the addresses that others use", async () => {
    const other = createServer((_request, response) => response.writeHead(502).end());
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const running = await startServer(config);
    config = configured({
      FAIRLEAD_SERVER_PUBLIC_URL: running.platformUrl,
      FAIRLEAD_SERVER_MODELS_URL: `http://127.0.0.1:${(other.address() as AddressInfo).port}`,
    });
    expect(await statuses()).toMatchObject({ "server.publicUrl": "ok", "server.modelsUrl": "fail", ledger: "ok" });
    expect(await message("server.modelsUrl")).toMatch(
      /returned 502; check that the proxy forwards to the inference host/,
    );
    await running.close();
    other.close();
  });

  test("reports what is wrong with the key, the store, the folder and the port", async () => {
    await createStore(config);
    writeFileSync(config.masterKeyFile, `${Buffer.alloc(32, 3).toString("base64")}\n`);
    expect(await message("master key")).toMatch(/restore that key/);
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    config = configured({ FAIRLEAD_SERVER_PLATFORM_PORT: `${(taken.address() as AddressInfo).port}` });
    expect(await message("platform host")).toMatch(/is already in use/);
    taken.close();
    writeFileSync(join(config.dataDir, "fairlead.db"), "no store at all ".repeat(500));
    expect(await statuses()).toMatchObject({ "store integrity": "fail" });
    chmodSync(config.dataDir, 0o755);
    expect(await message("data folder")).toMatch(/chmod 700/);
  });

  test("creates nothing where nothing exists yet", async () => {
    expect(await statuses()).toMatchObject({ "data folder": "warn", store: "warn" });
  });
});
