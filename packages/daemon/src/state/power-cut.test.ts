import { formatBootstrapToken } from "@fairlead/protocol/enrollment";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { enroll } from "../link/enroll.ts";
import { generateNodeKeys } from "../link/node-keys.ts";
import { prepareIdentity } from "../link/prepare-identity.ts";
import { ServerClock } from "../link/server-clock.ts";
import { aDesiredState, OWNER } from "../testing/builders.ts";
import { FakePlatform } from "../testing/fake-platform.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { ALL_SURVIVES, type Fate, MemoryFiles, NOTHING_SURVIVES, PowerCut } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { DesiredStore } from "./desired-store.ts";
import { IdentityStore, type SavedIdentity } from "./identity-store.ts";

/** Power cuts between any two disk effects and during a write (amazon-ecs-agent#1301). */

const FOLDER = "/state";
const keys = await generateNodeKeys();

/** The n-th identity and desired state that a history writes. */
const identityOf = (n: number): SavedIdentity => ({
  platformUrl: `https://platform-${n}.test`,
  nodeId: OWNER.nodeId,
  keys,
  enrolled: n % 2 === 0 ? null : { projectId: "prj_1", installationId: "ins_1", bootstrapTokenSha256: String(n) },
});
const desiredOf = (n: number) => aDesiredState({ generation: n, projectId: `prj_${"x".repeat(n % 50)}` });

/** What a starting daemon finds: the numbers of the identity and the desired state, or null. */
interface Found {
  readonly identity: number | null;
  readonly desired: number | null;
}

async function start(files: MemoryFiles): Promise<Found> {
  const identity = await new IdentityStore(files, FOLDER).load();
  const store = await openDesired(files);
  expect([identity.damaged, store.damaged]).toEqual([false, false]);
  const found = store.desired.current();
  const n = identity.value === null ? null : Number(/\d+/.exec(identity.value.platformUrl)?.[0]);
  if (n !== null) expect(identity.value).toEqual(identityOf(n));
  if (found !== null) expect(found).toEqual(desiredOf(found.generation));
  return { identity: n, desired: found?.generation ?? null };
}

async function openDesired(files: MemoryFiles): Promise<{ desired: DesiredStore; damaged: boolean }> {
  const desired = new DesiredStore(files, { folder: FOLDER, nodeId: OWNER.nodeId });
  return { desired, ...(await desired.load()) };
}

type Kind = keyof Found;

async function save(files: MemoryFiles, kind: Kind, n: number): Promise<void> {
  if (kind === "identity") {
    await new IdentityStore(files, FOLDER).save(identityOf(n));
    return;
  }
  const { desired } = await openDesired(files);
  desired.offer(desiredOf(n));
  await desired.save();
}

/** @returns false after a power cut. */
async function untilPowerCut(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof PowerCut) return false;
    throw error;
  }
}

/** All combinations in which unflushed effects may have reached the disk. */
function* fatesOf(files: MemoryFiles): Generator<Fate> {
  for (let mask = 0; mask < 2 ** files.unflushed; mask++) {
    for (const written of [0, 0.5, 1]) yield { survives: (effect) => (mask & (1 << effect)) !== 0, written };
  }
}

describe.each(["identity", "desired"] as const)("the %s on disk", (kind) => {
  test("is the old or the new one after a cut at any point, whatever reached the disk, and is never missing", async () => {
    const seen = new Set<number | null>();
    for (let cut = 0; ; cut++) {
      const files = new MemoryFiles();
      await save(files, kind, 1);
      files.cutAfter = files.operations + cut;
      const held = await untilPowerCut(() => save(files, kind, 2));
      for (const fate of fatesOf(files)) {
        const found = (await start(files.afterPowerCut(fate)))[kind];
        expect(held ? [2] : [1, 2]).toContain(found);
        seen.add(found);
      }
      if (held) break;
    }
    expect(seen).toEqual(new Set([1, 2]));
  });
});

const fate: fc.Arbitrary<Fate> = fc
  .record({ survivors: fc.array(fc.boolean(), { maxLength: 8 }), written: fc.double({ min: 0, max: 1, noNaN: true }) })
  .map(({ survivors, written }) => ({ survives: (effect) => survivors[effect] ?? false, written }));
const act = fc.record({
  kind: fc.constantFrom<Kind>("identity", "desired"),
  /** Number of effects before the power cut, if any. */
  cut: fc.option(fc.nat(6)),
  fate,
});

test("after any history of writes and cuts, a daemon finds what it had, or what was being written", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 12 }), async (history) => {
      let files = new MemoryFiles();
      let known: Found = { identity: null, desired: null };
      for (const [index, { kind, cut, fate: after }] of history.entries()) {
        const n = index + 1;
        if (cut !== null) files.cutAfter = files.operations + cut;
        const held = await untilPowerCut(() => save(files, kind, n));
        if (!held) files = files.afterPowerCut(after);
        files.cutAfter = Number.POSITIVE_INFINITY;
        const found = await start(files);
        const acceptable = held ? [n] : [known[kind], n];
        expect(acceptable).toContain(found[kind]);
        const other = kind === "identity" ? "desired" : "identity";
        expect(found[other]).toBe(known[other]);
        known = found;
      }
    }),
    { numRuns: 300 },
  );
});

describe("a first start that loses power", () => {
  const token = formatBootstrapToken({ url: "https://platform.test", nodeId: "nod_1", secret: "s".repeat(32) });
  const ids = { nodeId: "nod_1", projectId: "prj_1", installationId: "ins_1" };
  const answer = { json: { ...ids, identityToken: "jwt", expiresIn: 3600 } };

  async function firstStart(files: MemoryFiles, platform: FakePlatform): Promise<void> {
    const store = new IdentityStore(files, FOLDER);
    const prepared = await prepareIdentity({ store, stateDir: FOLDER, token, insecure: false });
    const { identity, enrollWith } = prepared;
    if (enrollWith === null) return;
    const time = new FakeTime();
    const deps = { http: platform.client, store, serverClock: new ServerClock(time), timers: time, random: () => 0.5 };
    const signal = new AbortController().signal;
    await enroll({ ...deps, log: silentLog }, { identity, token: enrollWith, operatingSystem: "Test 1", signal });
  }

  const keysSent = (platform: FakePlatform): Set<string> =>
    new Set(platform.requests.map(({ body }) => JSON.stringify(body && (body as { signingKey: unknown }).signingKey)));

  test.each([
    { what: "none", fate: NOTHING_SURVIVES },
    { what: "all", fate: ALL_SURVIVES },
  ])(
    "at any point, keeping $what of the unflushed data, is followed by one with the same key, if one was sent",
    async ({ fate: after }) => {
      for (let cut = 0; ; cut++) {
        const platform = new FakePlatform();
        platform.fallback = () => answer;
        const files = new MemoryFiles();
        files.cutAfter = cut;
        const held = await untilPowerCut(() => firstStart(files, platform));
        const later = files.afterPowerCut(after);
        await firstStart(later, platform);
        expect(keysSent(platform).size).toBe(1);
        expect((await new IdentityStore(later, FOLDER).load()).value?.enrolled).toMatchObject({ projectId: "prj_1" });
        if (held) break;
      }
    },
  );
});
