import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { HttpAnswer } from "../link/http-client.ts";
import { DurableRecord } from "../state/durable-record.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { ConnectCheck } from "./connect-check.ts";
import { PlatformKeys, platformKeysSchema } from "./platform-keys.ts";

const NODE = "nod_01kc3b6q2v8r5x0m7n4t9w1yza";
const MINUTE = 60;

interface Key {
  readonly kid: string;
  readonly privateKey: Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];
  readonly jwk: object;
}

async function newKey(kid: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: "EdDSA", use: "sig" } };
}

let first: Key;
let second: Key;
let time: FakeTime;
let files: MemoryFiles;
let published: readonly Key[];
let asked: number;
let down: boolean;

beforeAll(async () => {
  [first, second] = [await newKey("one"), await newKey("two")];
});
beforeEach(() => {
  time = new FakeTime();
  files = new MemoryFiles();
  [published, asked, down] = [[first], 0, false];
});

/** A starting daemon with the given files. */
async function started(): Promise<ConnectCheck> {
  const http = async (): Promise<HttpAnswer> => {
    asked += 1;
    if (down) throw new Error("the platform is away");
    return { status: 200, headers: {}, text: JSON.stringify({ keys: published.map(({ jwk }) => jwk) }) };
  };
  const record = new DurableRecord(files, "/state/platform-keys.json", platformKeysSchema);
  const keys = new PlatformKeys({
    platformUrl: "https://host",
    http,
    record,
    clock: time,
    timers: time,
    log: silentLog,
  });
  await keys.load();
  return new ConnectCheck({ keys, installationId: "ins_1", nodeId: NODE, now: () => time.now() });
}

/** A token issued now and valid for 15 minutes by default. */
function token(claims: JWTPayload = {}, key = first): Promise<string> {
  const now = Math.floor(time.now() / 1000);
  const all = { iss: "ins_1", aud: `${NODE}/engine`, sub: "usr_1", iat: now, exp: now + 15 * MINUTE, ...claims };
  return new SignJWT(all).setProtectedHeader({ alg: "EdDSA", kid: key.kid }).sign(key.privateKey);
}

describe("the gateway's token check", () => {
  test("accepts a token of the platform for this workload of this node", async () => {
    expect(await (await started()).check(await token(), "engine")).toBeNull();
  });

  test.each<[string, JWTPayload, string]>([
    ["another node", { aud: "nod_other/engine" }, "engine"],
    ["another workload", { aud: `${NODE}/agent` }, "engine"],
    ["the engine, sent to another workload", {}, "agent"],
    ["the platform host", { aud: "platform" }, "engine"],
    ["an empty audience", { aud: [] }, "engine"],
    ["another installation", { iss: "ins_2" }, "engine"],
    ["a missing subject", { sub: undefined } as never, "engine"],
  ])("rejects a token for %s", async (_name, claims, workload) => {
    expect(await (await started()).check(await token(claims), workload)).toBe("invalid_credential");
  });

  test("allows clocks to differ by at most a minute in either direction", async () => {
    const check = await started();
    const now = Math.floor(time.now() / 1000);
    const at = async (iat: number): Promise<unknown> =>
      check.check(await token({ iat, exp: iat + 15 * MINUTE }), "engine");
    expect(await at(now + 59)).toBeNull();
    expect(await at(now + 62)).toBe("invalid_credential");
    expect(await at(now - 15 * MINUTE - 58)).toBeNull();
    expect(await at(now - 15 * MINUTE - 61)).toBe("expired_credential");
  });

  test("rejects a token that claims a longer lifetime than tokens have", async () => {
    const now = Math.floor(time.now() / 1000);
    const long = await token({ iat: now - 3600, exp: now + 3600 });
    expect(await (await started()).check(long, "engine")).toBe("expired_credential");
  });

  test("rejects other algorithms, signatures by unknown keys, and values that are not tokens", async () => {
    const check = await started();
    const good = await token();
    const [header = "", payload = ""] = good.split(".");
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    const hmac = await new SignJWT({ aud: `${NODE}/engine` })
      .setProtectedHeader({ alg: "HS256", kid: "one" })
      .sign(new Uint8Array(32));
    for (const text of [`${none}.${payload}.`, `${header}.${payload}.AAAA`, hmac, "", "x", "a.b.c", "🌍"]) {
      expect(await check.check(text, "engine")).toBe("invalid_credential");
    }
    expect(await check.check(await token({}, { ...second, kid: "one" }), "engine")).toBe("invalid_credential");
  });

  test("caches a valid token until it expires, and no longer", async () => {
    const check = await started();
    const good = await token();
    expect(await check.check(good, "engine")).toBeNull();
    expect(await check.check(good, "agent")).toBe("invalid_credential");
    await time.advance((16 * MINUTE - 1) * 1000);
    expect(await check.check(good, "engine")).toBeNull();
    await time.advance(1000);
    expect(await check.check(good, "engine")).toBe("expired_credential");
  });
});

describe("the platform's keys on the node", () => {
  test("are requested once, stored on disk, and usable after a restart without the platform", async () => {
    const check = await started();
    await Promise.all([check.check(await token(), "engine"), check.check(await token({ sub: "usr_2" }), "engine")]);
    expect(asked).toBe(1);
    down = true;
    expect(await (await started()).check(await token(), "engine")).toBeNull();
  });

  test("follow a rotation with the first token of the new key, while the old key stays valid", async () => {
    const check = await started();
    const old = await token();
    await check.check(old, "engine");
    published = [first, second];
    await time.advance(1000);
    expect(await check.check(await token({}, second), "engine")).toBeNull();
    expect(await check.check(old, "engine")).toBeNull();
  });

  test("follow a rotation that happens just after they were requested", async () => {
    const check = await started();
    await check.check(await token(), "engine");
    published = [first, second];
    const checked = check.check(await token({}, second), "engine");
    await time.advance(1000);
    expect(await checked).toBeNull();
  });

  test("drop a withdrawn key within an hour, along with the tokens that it signed", async () => {
    const check = await started();
    await check.check(await token(), "engine");
    published = [second];
    await time.advance(3_600_000);
    await check.check(await token({ sub: "usr_2" }), "engine");
    await time.advance(0);
    const verdict = check.check(await token(), "engine");
    await time.advance(1000);
    expect(await verdict).toBe("invalid_credential");
  });

  test("that cannot be fetched leave a token undecided, not rejected", async () => {
    down = true;
    expect(await (await started()).check(await token(), "engine")).toBe("unavailable");
  });

  test("survive a damaged copy on disk", async () => {
    const check = await started();
    await check.check(await token(), "engine");
    files.put("/state/platform-keys.json", '{"keys":');
    down = true;
    expect(await (await started()).check(await token(), "engine")).toBeNull();
  });
});
