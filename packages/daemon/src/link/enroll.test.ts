import { enrollRequestSchema } from "@fairlead/protocol/enrollment";
import { importJWK, jwtVerify } from "jose";
import { describe, expect, test } from "vitest";
import { EXIT } from "../process/start-error.ts";
import { IdentityStore, type SavedIdentity } from "../state/identity-store.ts";
import { FakePlatform, refusal } from "../testing/fake-platform.ts";
import { eventually, FakeTime } from "../testing/fake-time.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { enroll } from "./enroll.ts";
import { generateNodeKeys, publicKeys, sha256Of } from "./node-keys.ts";
import { ServerClock } from "./server-clock.ts";

const answer = {
  json: { nodeId: "nod_1", projectId: "prj_1", installationId: "ins_1", identityToken: "jwt", expiresIn: 3600 },
};

async function start(platform: FakePlatform) {
  const time = new FakeTime();
  const files = new MemoryFiles();
  const store = new IdentityStore(files, "/state");
  const identity: SavedIdentity = {
    platformUrl: "https://platform.test",
    nodeId: "nod_1",
    keys: await generateNodeKeys(),
    enrolled: null,
  };
  await store.save(identity);
  const closing = new AbortController();
  const deps = {
    http: platform.client,
    store,
    serverClock: new ServerClock(time),
    timers: time,
    random: () => 0.5,
    log: silentLog,
  };
  const result = enroll(deps, { identity, token: "flb_x", operatingSystem: "Test 1", signal: closing.signal });
  result.catch(() => null);
  return { time, store, identity, closing, result };
}

test("enrolling stores the project and the installation with the keys", async () => {
  const { result, store, identity } = await start(new FakePlatform().reply(answer));
  expect((await result).answer.identityToken).toBe("jwt");
  const enrolled = { projectId: "prj_1", installationId: "ins_1", bootstrapTokenSha256: sha256Of("flb_x") };
  expect((await store.load()).value).toEqual({ ...identity, enrolled });
});

test("a lost response is requested again with the same keys", async () => {
  const platform = new FakePlatform().reply(new Error("socket hang up"), { status: 502, text: "<html>" }, answer);
  const { result, time } = await start(platform);
  await eventually(() => platform.requests.length === 1);
  await time.advance(60_000);
  await result;
  expect(platform.requests).toHaveLength(3);
  expect(new Set(platform.requests.map((request) => JSON.stringify(request.body))).size).toBe(1);
  expect(platform.requests[0]?.bearer).toBe("flb_x");
});

test("the proof binds the signing key to this node and this bootstrap token", async () => {
  const platform = new FakePlatform().reply(answer);
  const { result, identity } = await start(platform);
  await result;
  const { proof } = enrollRequestSchema.parse(platform.requests[0]?.body);
  const { payload } = await jwtVerify(proof, await importJWK(publicKeys(identity.keys).signingKey, "EdDSA"));
  expect(payload).toEqual({ sub: "nod_1", bootstrapTokenSha256: sha256Of("flb_x") });
});

test("only public keys are sent", async () => {
  const platform = new FakePlatform().reply(answer);
  const { result, identity } = await start(platform);
  await result;
  const sent = JSON.stringify(platform.requests);
  expect(sent).not.toContain(identity.keys.signing.d);
  expect(sent).not.toContain(identity.keys.sealing.d);
});

test("a network that stays down is retried forever (coreos/fleet#1325)", async () => {
  const platform = new FakePlatform();
  const { result, time } = await start(platform);
  await eventually(() => platform.requests.length === 1);
  for (let hour = 0; hour < 3; hour++) await time.advance(3_600_000);
  expect(platform.requests.length).toBeGreaterThan(100);
  platform.reply(answer);
  await time.advance(60_000);
  await result;
});

test("retry-after is obeyed", async () => {
  const platform = new FakePlatform().reply(refusal(503, "overloaded", { "retry-after": "90" }), answer);
  const { result, time } = await start(platform);
  await eventually(() => platform.requests.length === 1);
  await time.advance(89_000);
  expect(platform.requests).toHaveLength(1);
  await time.advance(1000);
  await result;
});

describe("a permanently rejected token ends the daemon with the exit code that systemd does not restart", () => {
  test.each([
    [409, "bootstrap_token_used"],
    [401, "invalid_credential"],
    [401, "expired_credential"],
    [404, "not_found"],
  ])("%i %s", async (status, code) => {
    const { result } = await start(new FakePlatform().reply(refusal(status, code)));
    await expect(result).rejects.toMatchObject({ exitCode: EXIT.refused, message: expect.stringContaining(code) });
  });
});

test("a 401 that is not the platform's own (a proxy in between) is not a rejection", async () => {
  const platform = new FakePlatform().reply({ status: 401, text: "proxy" }, answer);
  const { result, time } = await start(platform);
  await eventually(() => platform.requests.length === 1);
  await time.advance(10_000);
  await result;
});

test("stopping the daemon ends the wait", async () => {
  const { result, closing } = await start(new FakePlatform());
  closing.abort();
  await expect(result).rejects.toMatchObject({ exitCode: EXIT.ok });
});
