import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/clock";
import { freePorts } from "@fairlead/protocol/testing/free-ports";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openLocalAdmin } from "../admin/local-admin.ts";
import { type Config, loadConfig } from "../config.ts";
import { startServer } from "../server.ts";
import { examine, type Finding } from "./doctor.ts";

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

async function statuses(): Promise<Readonly<Record<string, Finding["status"]>>> {
  return Object.fromEntries((await examine(config, systemClock)).map(({ check, status }) => [check, status]));
}

async function message(check: string): Promise<string> {
  return (await examine(config, systemClock)).find((finding) => finding.check === check)?.message ?? "";
}

describe("the doctor", () => {
  test("finds a stopped installation well", async () => {
    await (await openLocalAdmin(config)).close();
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

  test("asks a running one at the address that others use", async () => {
    const other = createServer((_request, response) => response.writeHead(502).end());
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const running = await startServer(config);
    config = configured({
      FAIRLEAD_SERVER_PUBLIC_URL: running.platformUrl,
      FAIRLEAD_SERVER_MODELS_URL: `http://127.0.0.1:${(other.address() as AddressInfo).port}`,
    });
    expect(await statuses()).toMatchObject({ "server.publicUrl": "ok", "server.modelsUrl": "fail", ledger: "ok" });
    expect(await message("server.modelsUrl")).toMatch(/answers 502: does the proxy lead to the inference host/);
    await running.close();
    other.close();
  });

  test("says what is wrong with the key, the store, the folder and the port", async () => {
    await (await openLocalAdmin(config)).close();
    writeFileSync(config.masterKeyFile, `${Buffer.alloc(32, 3).toString("base64")}\n`);
    expect(await message("master key")).toMatch(/put that one back/);
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    config = configured({ FAIRLEAD_SERVER_PLATFORM_PORT: `${(taken.address() as AddressInfo).port}` });
    expect(await message("platform host")).toMatch(/is taken by another program/);
    taken.close();
    writeFileSync(join(config.dataDir, "fairlead.db"), "no store at all ".repeat(500));
    expect(await statuses()).toMatchObject({ "store integrity": "fail" });
    chmodSync(config.dataDir, 0o755);
    expect(await message("data folder")).toMatch(/chmod 700/);
  });

  test("makes nothing where nothing is yet", async () => {
    expect(await statuses()).toMatchObject({ "data folder": "warn", store: "warn" });
  });
});
