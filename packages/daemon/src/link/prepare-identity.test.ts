import { formatBootstrapToken } from "@fairlead/protocol/enrollment";
import { beforeEach, describe, expect, test } from "vitest";
import { EXIT } from "../process/start-error.ts";
import { IdentityStore } from "../state/identity-store.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { sha256Of } from "./node-keys.ts";
import { type PreparedIdentity, prepareIdentity } from "./prepare-identity.ts";

let files: MemoryFiles;
let store: IdentityStore;
beforeEach(() => {
  files = new MemoryFiles();
  store = new IdentityStore(files, "/state");
});

const tokenFor = (nodeId: string, secret = "s".repeat(32), url = "https://platform.test"): string =>
  formatBootstrapToken({ url, nodeId, secret });
const prepare = (token: string | null, insecure = false): Promise<PreparedIdentity> =>
  prepareIdentity({ store, stateDir: "/state", token, insecure });

async function enrolled(token: string): Promise<void> {
  const { identity } = await prepare(token);
  const done = { projectId: "prj_1", installationId: "ins_1", bootstrapTokenSha256: sha256Of(token) };
  await store.save({ ...identity, enrolled: done });
}

test("a first start creates keys and saves them before anything is sent", async () => {
  const { identity, enrollWith } = await prepare(tokenFor("nod_1"));
  expect(enrollWith).toBe(tokenFor("nod_1"));
  expect((await store.load()).value).toEqual(identity);
});

test("a start after a crash during enrolment continues with the same keys", async () => {
  const first = await prepare(tokenFor("nod_1"));
  const second = await prepare(tokenFor("nod_1"));
  expect(second).toEqual(first);
});

test("an enrolled node needs no token, and does not use the spent one again", async () => {
  await enrolled(tokenFor("nod_1"));
  expect((await prepare(null)).enrollWith).toBeNull();
  expect((await prepare(tokenFor("nod_1"))).enrollWith).toBeNull();
});

test("a new token for the same node enrols again, with the same keys and workloads", async () => {
  await enrolled(tokenFor("nod_1"));
  const before = (await store.load()).value;
  const fresh = tokenFor("nod_1", "t".repeat(32), "https://moved.test");
  const { identity, enrollWith } = await prepare(fresh);
  expect(enrollWith).toBe(fresh);
  expect(identity).toEqual({ ...before, platformUrl: "https://moved.test" });
});

test("a token that never completed enrolment gives way to another node's token", async () => {
  const first = await prepare(tokenFor("nod_1"));
  const second = await prepare(tokenFor("nod_2"));
  expect(second.identity.nodeId).toBe("nod_2");
  expect(second.identity.keys).not.toEqual(first.identity.keys);
});

test("damage to one copy has no effect; damage to both is reported with the remedy", async () => {
  await enrolled(tokenFor("nod_1"));
  const whole = await files.read("/state/identity.json");
  files.put("/state/identity.json", "{");
  expect(await prepare(null)).toMatchObject({ identity: { nodeId: "nod_1" }, restored: ["identity.json"] });
  expect(await files.read("/state/identity.json")).toBe(whole);
  expect((await prepare(null)).restored).toEqual([]);
  files.put("/state/identity.json.copy", "");
  expect((await prepare(null)).restored).toEqual(["identity.json.copy"]);
  expect(await files.read("/state/identity.json.copy")).toBe(whole);
  await files.remove("/state/identity.json");
  expect((await prepare(null)).restored).toEqual(["identity.json"]);
  files.put("/state/identity.json", "");
  files.put("/state/identity.json.copy", "");
  await expect(prepare(null)).rejects.toMatchObject({
    exitCode: EXIT.usage,
    message: expect.stringContaining("damaged"),
  });
  expect((await prepare(tokenFor("nod_1", "t".repeat(32)))).enrollWith).not.toBeNull();
});

describe("rejected, with the exit code for incorrect usage", () => {
  test("no identity and no token", async () => {
    await expect(prepare(null)).rejects.toMatchObject({
      exitCode: EXIT.usage,
      message: expect.stringContaining("not enrolled"),
    });
  });
  test("an invalid token", async () => {
    await expect(prepare("flb_garbage")).rejects.toMatchObject({ exitCode: EXIT.usage });
  });
  test("another node's token in the folder of an enrolled node", async () => {
    await enrolled(tokenFor("nod_1"));
    await expect(prepare(tokenFor("nod_2"))).rejects.toMatchObject({
      exitCode: EXIT.usage,
      message: expect.stringContaining("nod_1"),
    });
  });
});

test.each([
  ["https://platform.test", true],
  ["http://127.0.0.1:8080", true],
  ["http://localhost:8080", true],
  ["http://[::1]:8080", true],
  ["http://127.0.0.1.evil.test", false],
  ["http://10.0.0.1:8080", false],
  ["http://platform.test", false],
])("%s is allowed without --insecure: %s", async (url, allowed) => {
  const outcome = prepare(tokenFor("nod_1", "s".repeat(32), url));
  if (allowed) await outcome;
  else await expect(outcome).rejects.toMatchObject({ exitCode: EXIT.usage });
  await prepare(tokenFor("nod_1", "s".repeat(32), url), true);
});
