import { decodeJwt, importJWK, jwtVerify } from "jose";
import { beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { EnrolledIdentity, NodeKeys } from "../state/identity-store.ts";
import { FakePlatform, refusal } from "../testing/fake-platform.ts";
import { eventually, FakeTime, settle } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { IdentityRevoked, IdentityTokens } from "./identity.ts";
import { generateNodeKeys, publicKeys } from "./node-keys.ts";
import { ServerClock } from "./server-clock.ts";

let keys: NodeKeys;
beforeAll(async () => {
  keys = await generateNodeKeys();
});

const token = (name: string, expiresIn = 900) => ({ json: { identityToken: name, expiresIn } });

function start(platform: FakePlatform) {
  const time = new FakeTime();
  const identity: EnrolledIdentity = {
    platformUrl: "https://platform.test",
    nodeId: "nod_1",
    keys,
    enrolled: { projectId: "prj_1", installationId: "ins_1", bootstrapTokenSha256: "" },
  };
  let nonce = 0;
  const serverClock = new ServerClock(time);
  const deps = {
    identity,
    http: platform.client,
    clock: time,
    serverClock,
    newNonce: () => `n${nonce++}`,
    log: silentLog,
  };
  return { time, serverClock, tokens: new IdentityTokens(deps) };
}

const assertionOf = (platform: FakePlatform, index: number): string =>
  z.object({ assertion: z.string() }).parse(platform.requests[index]?.body).assertion;

test("the assertion proves the node's key, to this installation only, for two minutes", async () => {
  const platform = new FakePlatform().reply(token("one"));
  const { time, tokens } = start(platform);
  expect(await tokens.token()).toBe("one");
  const key = await importJWK(publicKeys(keys).signingKey, "EdDSA");
  const options = { issuer: "nod_1", subject: "nod_1", audience: "ins_1", currentDate: new Date(time.now()) };
  const { payload, protectedHeader } = await jwtVerify(assertionOf(platform, 0), key, options);
  expect(protectedHeader.alg).toBe("EdDSA");
  expect(payload).toMatchObject({ jti: "n0", exp: (payload.iat ?? 0) + 120 });
});

test("a token is used until a third of its lifetime is left, then renewed while it is still valid", async () => {
  const platform = new FakePlatform().reply(token("one"), token("two"));
  const { time, tokens } = start(platform);
  await tokens.token();
  await time.advance(599_000);
  expect(await tokens.token()).toBe("one");
  expect(platform.requests).toHaveLength(1);
  await time.advance(2000);
  expect(await tokens.token()).toBe("one");
  await eventually(() => platform.requests.length === 2);
  await settle();
  expect(await tokens.token()).toBe("two");
});

test("a failed renewal keeps the valid token, and is not repeated for every caller", async () => {
  const platform = new FakePlatform().reply(token("one"));
  const { time, tokens } = start(platform);
  await tokens.token();
  await time.advance(650_000);
  for (let i = 0; i < 10; i++) expect(await tokens.token()).toBe("one");
  await eventually(() => platform.requests.length === 2);
  await settle();
  expect(platform.requests).toHaveLength(2);
});

test("a jump of the wall clock does not affect a token's lifetime", async () => {
  const platform = new FakePlatform().reply(token("one"), token("two"));
  const { time, tokens } = start(platform);
  await tokens.token();
  time.epoch += 10 * 365 * 86_400_000;
  expect(await tokens.token()).toBe("one");
  await time.advance(901_000);
  expect(await tokens.token()).toBe("two");
});

test("concurrent callers share one renewal", async () => {
  const platform = new FakePlatform().reply(token("one"));
  const { tokens } = start(platform);
  expect(await Promise.all([tokens.token(), tokens.token(), tokens.token()])).toEqual(["one", "one", "one"]);
  expect(platform.requests).toHaveLength(1);
});

test("a node whose clock is off signs again with the server's time (harvester#2860)", async () => {
  const date = new Date(Date.UTC(2027, 5, 1)).toUTCString();
  const platform = new FakePlatform().reply(refusal(401, "invalid_credential", { date }), token("one"));
  const { tokens, serverClock } = start(platform);
  expect(await tokens.token()).toBe("one");
  expect(decodeJwt(assertionOf(platform, 1)).iat).toBe(Date.parse(date) / 1000);
  expect(serverClock.skew()).toBeLessThan(-86_400_000);
});

test("an identity that the platform itself rejects twice is revoked", async () => {
  const platform = new FakePlatform().reply(refusal(401, "invalid_credential"), refusal(401, "invalid_credential"));
  const { tokens } = start(platform);
  await expect(tokens.token()).rejects.toBeInstanceOf(IdentityRevoked);
  expect((await tokens.revoked).message).toContain("invalid_credential");
});

test.each([
  ["the network is down", new Error("ECONNREFUSED")],
  ["a proxy returns 401", { status: 401, text: "no" }],
  ["the server is starting", refusal(503, "unavailable")],
])("%s: the identity is not revoked, and the next call tries again", async (_, reply) => {
  const platform = new FakePlatform().reply(reply, token("one"));
  const { tokens } = start(platform);
  await expect(tokens.token()).rejects.not.toBeInstanceOf(IdentityRevoked);
  expect(await tokens.token()).toBe("one");
});

test("a token that the platform rejected is replaced by a new one", async () => {
  const platform = new FakePlatform().reply(token("one"), token("two"));
  const { tokens } = start(platform);
  await tokens.token();
  tokens.invalidate("an older one");
  expect(await tokens.token()).toBe("one");
  tokens.invalidate("one");
  expect(await tokens.token()).toBe("two");
});
