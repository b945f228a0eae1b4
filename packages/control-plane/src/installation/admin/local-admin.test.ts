import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { decodeProtectedHeader } from "jose";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Config, loadConfig } from "../config/config.ts";
import { acquireServerLock } from "../db/postgres/server-lock.ts";
import { openLocalAdmin } from "./local-admin.ts";
import { createStore, openNewAdmin } from "./new-installation.fixture.ts";
import { Running } from "./running.fixture.ts";

const ann = { email: "Ann@example.org", name: "Ann", platformAdmin: true };

let dir: string;
let config: Config;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-admin-"));
  config = loadConfig({ env: { FAIRLEAD_DATA_DIR: join(dir, "data") } });
});
afterEach(() => rmSync(dir, { recursive: true }));

describe("local administration without a server", () => {
  test("creates the data folder and the store, readable only by their owner", async () => {
    const admin = await openNewAdmin(config);
    const { user, created } = await admin.createUser(ann);
    expect({ created, ...user }).toMatchObject({ created: true, email: "ann@example.org", platformAdmin: true });
    await admin.close();
    expect(statSync(config.dataDir).mode & 0o777).toBe(0o700);
    expect(statSync(config.masterKeyFile).mode & 0o777).toBe(0o600);
  });

  test("keeps servers out while it works, and releases the folder afterwards", async () => {
    const admin = await openNewAdmin(config);
    expect(acquireServerLock(config.dataDir)).toBeNull();
    await admin.close();
    const lock = acquireServerLock(config.dataDir);
    expect(lock).not.toBeNull();
    lock?.release();
  });

  test("releases the folder when the store cannot be opened", async () => {
    const admin = await openNewAdmin(config);
    await admin.close();
    rmSync(config.masterKeyFile);
    await expect(openLocalAdmin(config)).rejects.toThrow(/master key cannot be read/);
    const lock = acquireServerLock(config.dataDir);
    expect(lock).not.toBeNull();
    lock?.release();
  });

  test("rejects invalid input and names the field", async () => {
    const admin = await openNewAdmin(config);
    await expect(admin.createUser({ ...ann, email: "ann" })).rejects.toMatchObject({ param: "email" });
    await expect(admin.createToken({ email: "none@example.org" })).rejects.toMatchObject({ code: "not_found" });
    await admin.close();
  });

  test("creates nothing when there is no store, and names the setting that locates it", async () => {
    await expect(openLocalAdmin(config)).rejects.toThrow(/no store at .*data.* --config .*FAIRLEAD_CONFIG/);
    expect(existsSync(config.dataDir)).toBe(false);
    mkdirSync(config.dataDir);
    await expect(openLocalAdmin(config)).rejects.toThrow(/no store at .*fairlead\.db/);
    expect(readdirSync(config.dataDir)).toEqual([]);
  });
});

describe("links created by the operator", () => {
  const tokenIn = (url: string): string => url.split("/").at(-1) ?? "";

  test("a reset link works once, for one user and one hour, and invalidates the previous link", async () => {
    const server = await Running.start(config);
    const { oneTimeLinks } = server.installation;
    const admin = await openNewAdmin(config);
    const { user } = await admin.createUser(ann);
    const before = systemClock.now();
    const first = await admin.resetLink({ email: "ANN@example.org" });
    expect(first.url).toMatch(/^https:\/\/fairlead\.example\.org\/reset\/fli_[\w-]{43}$/);
    expect(Math.abs(Date.parse(first.expiresAt) - before - 3_600_000)).toBeLessThan(60_000);
    const second = await admin.resetLink({ email: ann.email });
    expect(await oneTimeLinks.find(tokenIn(first.url))).toBeNull();
    expect(await oneTimeLinks.find(tokenIn(second.url))).toMatchObject({ purpose: "reset", userId: user.id });
    await expect(admin.resetLink({ email: "none@example.org" })).rejects.toMatchObject({ code: "not_found" });
    await server.stop();
  });

  test("a setup link can be created until the first user exists, and only the latest one is valid", async () => {
    const server = await Running.start(config);
    const { oneTimeLinks } = server.installation;
    const admin = await openNewAdmin(config);
    const first = await admin.setUpLink();
    const second = await admin.setUpLink();
    expect(await oneTimeLinks.find(tokenIn(first.url))).toBeNull();
    expect(await oneTimeLinks.find(tokenIn(second.url))).toMatchObject({ purpose: "set_up" });
    await admin.createUser(ann);
    await expect(admin.setUpLink()).rejects.toMatchObject({ code: "already_exists" });
    await server.stop();
  });

  test("without a server, links use the URL that the server will have", async () => {
    const admin = await openNewAdmin(config);
    expect((await admin.setUpLink()).url).toMatch(/^http:\/\/127\.0\.0\.1:8080\/set-up\/fli_/);
    await admin.createUser(ann);
    expect((await admin.resetLink({ email: ann.email })).url).toMatch(/^http:\/\/127\.0\.0\.1:8080\/reset\/fli_/);
    await admin.close();
  });

  test("the audit log records their creation without their tokens", async () => {
    const server = await Running.start(config);
    const admin = await openNewAdmin(config);
    const { url } = await admin.setUpLink();
    await admin.createUser(ann);
    const { url: reset } = await admin.resetLink({ email: ann.email });
    const rows = await server.installation.db.selectFrom("audit_event").selectAll().orderBy("id").execute();
    expect(rows.map(({ action }) => action)).toEqual(expect.arrayContaining(["admin.set_up_link", "admin.reset_link"]));
    for (const token of [url, reset].map(tokenIn)) expect(JSON.stringify(rows)).not.toContain(token.slice(4));
    await server.stop();
  });
});

test.each(["with", "without"])(
  "%s a server, the signing key is rotated, and tokens signed with the old key stay valid",
  async (way) => {
    const offline = await openNewAdmin(config);
    await offline.createUser(ann);
    const { token } = await offline.createToken({ email: ann.email });
    await offline.close();
    const server = way === "with" ? await Running.start(config) : null;
    const admin = await openNewAdmin(config);
    const { keyId } = await admin.rotateSigningKey();
    const { token: next } = await admin.createToken({ email: ann.email });
    await admin.close();
    await server?.stop();
    expect(decodeProtectedHeader(next).kid).toBe(keyId);
    const after = await Running.start(config);
    for (const good of [token, next])
      expect(await after.installation.tokens.verify(good)).toMatchObject({ audience: "platform" });
    const actions = (await after.installation.db.selectFrom("audit_event").select("action").execute()).map(
      ({ action }) => action,
    );
    expect(actions).toEqual(expect.arrayContaining(["user.create", "admin.token", "admin.rotate_signing_key"]));
    await after.stop();
  },
);

test("after a leaked signing key is dropped, the running server immediately rejects its tokens", async () => {
  const server = await Running.start(config);
  const admin = await openNewAdmin(config);
  await admin.createUser(ann);
  const { token } = await admin.createToken({ email: ann.email });
  const { tokens } = server.installation;
  expect(await tokens.verify(token)).toMatchObject({ audience: "platform" });
  await admin.rotateSigningKey({ forgetFormer: true });
  await expect(tokens.verify(token)).rejects.toMatchObject({ code: "invalid_credential" });
  const { token: next } = await admin.createToken({ email: ann.email });
  expect(await tokens.verify(next)).toMatchObject({ audience: "platform" });
  await server.stop();
});

describe("local administration of a running server", () => {
  test("goes through a socket that only its owner can open", async () => {
    const server = await Running.start(config);
    const socket = join(config.dataDir, "admin.sock");
    expect(statSync(socket).isSocket()).toBe(true);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    const admin = await openNewAdmin(config);
    expect(await admin.createUser(ann)).toMatchObject({ created: true });
    expect(await admin.createUser(ann)).toMatchObject({ created: false });
    const { token, expiresAt } = await admin.createToken({ email: "ANN@example.org", ttlSeconds: 60 });
    expect(await server.installation.tokens.verify(token)).toMatchObject({ audience: "platform" });
    expect(Date.parse(expiresAt)).toBeGreaterThan(0);
    await admin.close();
    await server.stop();
    expect(existsSync(socket)).toBe(false);
  });

  test("a token is valid for twelve hours unless another lifetime is requested", async () => {
    const server = await Running.start(config);
    const admin = await openNewAdmin(config);
    await admin.createUser(ann);
    const before = systemClock.now();
    const { expiresAt } = await admin.createToken({ email: ann.email });
    const hours = (Date.parse(expiresAt) - before) / 3_600_000;
    expect(hours).toBeGreaterThan(11.9);
    expect(hours).toBeLessThan(12.1);
    await server.stop();
  });

  test("returns the same errors as without a server", async () => {
    const server = await Running.start(config);
    const admin = await openNewAdmin(config);
    await expect(admin.createUser({ ...ann, name: "" })).rejects.toMatchObject({ name: "DomainError", param: "name" });
    await expect(admin.createToken({ email: "none@example.org" })).rejects.toMatchObject({ code: "not_found" });
    await expect(admin.createToken({ email: ann.email, ttlSeconds: 1e9 })).rejects.toMatchObject({
      param: "ttlSeconds",
    });
    await server.stop();
  });

  test("replaces a socket left behind by a killed server", async () => {
    await createStore(config);
    writeFileSync(join(config.dataDir, "admin.sock"), "stale");
    const server = await Running.start(config);
    const admin = await openNewAdmin(config);
    expect(await admin.createUser(ann)).toMatchObject({ created: true });
    await server.stop();
  });

  test("waits for a server that is about to open its socket", async () => {
    await createStore(config);
    const lock = acquireServerLock(config.dataDir);
    const admin = await openNewAdmin(config);
    const answer = admin.createUser(ann);
    lock?.release();
    const server = await Running.start(config);
    expect(await answer).toMatchObject({ created: true });
    await server.stop();
  });
});

test("a data folder whose path is too long for a socket is rejected with a clear message", async () => {
  const deep = join(dir, "x".repeat(100));
  config = loadConfig({ env: { FAIRLEAD_DATA_DIR: deep } });
  await expect(Running.start(config)).rejects.toThrow(/too long for a socket/);
});
