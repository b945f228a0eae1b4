import { describe, expect, test } from "vitest";
import { aDesiredState, anAgent, aSpec, OWNER } from "../testing/builders.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { DesiredStore } from "./desired-store.ts";

const openStore = async (files: MemoryFiles): Promise<DesiredStore> => {
  const store = new DesiredStore(files, { folder: "/state", nodeId: OWNER.nodeId });
  await store.load();
  return store;
};

test.each([
  { is: "a newer generation is accepted", epoch: "epo_1", generation: 6, outcome: "accepted" },
  { is: "the same generation changes nothing", epoch: "epo_1", generation: 5, outcome: "unchanged" },
  { is: "an older generation of the same epoch is refused", epoch: "epo_1", generation: 4, outcome: "older" },
  {
    is: "a restored store is followed, even to a lower generation",
    epoch: "epo_2",
    generation: 1,
    outcome: "accepted",
  },
])("$is", async ({ epoch, generation, outcome }) => {
  const store = await openStore(new MemoryFiles());
  store.offer(aDesiredState({ epoch: "epo_1", generation: 5 }));
  expect(store.offer(aDesiredState({ epoch, generation }))).toBe(outcome);
});

test("a state for another node is rejected, from the link and from the disk", async () => {
  const files = new MemoryFiles();
  const store = await openStore(files);
  expect(store.offer(aDesiredState({ nodeId: "nod_other" }))).toBe("another-node");
  store.offer(aDesiredState());
  await store.save();
  const other = new DesiredStore(files, { folder: "/state", nodeId: "nod_other" });
  await other.load();
  expect(other.current()).toBeNull();
});

test("an accepted state survives a restart", async () => {
  const files = new MemoryFiles();
  const store = await openStore(files);
  store.offer(aDesiredState({ generation: 7 }));
  await store.save();
  expect((await openStore(files)).current()).toEqual(aDesiredState({ generation: 7 }));
});

test("a full disk does not prevent a state from taking effect, and the next save writes it", async () => {
  const files = new MemoryFiles();
  const store = await openStore(files);
  files.full = true;
  expect(store.offer(aDesiredState({ generation: 2 }))).toBe("accepted");
  await expect(store.save()).rejects.toThrow("ENOSPC");
  expect(store.current()?.generation).toBe(2);
  files.full = false;
  await store.save();
  expect((await openStore(files)).current()?.generation).toBe(2);
});

describe("damage (amazon-ecs-agent#1301)", () => {
  test.each(["", "{", '{"epoch":1}', "\0\0\0\0"])(
    "to the first copy (%j) falls back to the second copy",
    async (text) => {
      const files = new MemoryFiles();
      const store = await openStore(files);
      store.offer(aDesiredState({ generation: 3 }));
      await store.save();
      files.put("/state/desired.json", text);
      expect((await openStore(files)).current()?.generation).toBe(3);
    },
  );

  test("to both copies reads as no state, and is reported without a crash", async () => {
    const files = new MemoryFiles();
    files.put("/state/desired.json", "{");
    files.put("/state/desired.json.copy", "");
    const store = new DesiredStore(files, { folder: "/state", nodeId: OWNER.nodeId });
    expect(await store.load()).toEqual({ damaged: true });
    expect(store.current()).toBeNull();
  });
});

describe("agents that a new state removes", () => {
  const agents = (generation: number, ...ids: string[]) => {
    const workloads = [aSpec(), ...ids.map((workloadId) => anAgent({ workloadId }))];
    return aDesiredState({ generation, workloads });
  };

  test("are remembered until they are seen to be gone, even across a restart, and do not include the engine", async () => {
    const files = new MemoryFiles();
    const store = await openStore(files);
    store.offer(agents(1, "agt_a", "agt_b"));
    expect([...store.leaving()]).toEqual([]);
    store.offer(agents(2, "agt_b"));
    store.offer(aDesiredState({ generation: 3, workloads: [] }));
    expect([...store.leaving()]).toEqual(["agt_a", "agt_b"]);
    await store.save();
    const next = await openStore(files);
    expect([...next.leaving()]).toEqual(["agt_a", "agt_b"]);
    expect(next.current()).toEqual(aDesiredState({ generation: 3, workloads: [] }));
    next.seen(new Set(["agt_b"]));
    next.offer(agents(4));
    expect([...next.leaving()]).toEqual(["agt_b"]);
  });

  test("are wanted again once a state names them again", async () => {
    const store = await openStore(new MemoryFiles());
    store.offer(agents(1, "agt_a"));
    store.offer(agents(2));
    store.offer(agents(3, "agt_a"));
    expect([...store.leaving()]).toEqual([]);
  });
});

test.each([
  ["truncated", async (files: MemoryFiles) => files.put("/state/desired.json", '{"epoch": "ep')],
  ["missing", async (files: MemoryFiles) => files.remove("/state/desired.json")],
])("a file that is %s is restored from its copy at the daemon's start, and at no other time", async (_, spoil) => {
  const files = new MemoryFiles();
  const store = await openStore(files);
  store.offer(aDesiredState({ generation: 7 }));
  await store.save();
  const whole = await files.read("/state/desired.json");
  await spoil(files);
  const spoiled = await files.read("/state/desired.json");
  const reader = await openStore(files);
  expect(reader.current()?.generation).toBe(7);
  expect(await files.read("/state/desired.json")).toBe(spoiled);
  files.full = true;
  const starting = new DesiredStore(files, { folder: "/state", nodeId: OWNER.nodeId });
  expect(await starting.recover()).toMatchObject({ restored: [] });
  expect(starting.current()?.generation).toBe(7);
  files.full = false;
  expect(await starting.recover()).toMatchObject({ restored: ["desired.json"] });
  expect(await files.read("/state/desired.json")).toBe(whole);
});

test("an unreadable sector costs one copy; a file without read permission is not damage", async () => {
  const files = new MemoryFiles();
  const store = await openStore(files);
  store.offer(aDesiredState({ generation: 7 }));
  await store.save();
  const broken = (code: string): DesiredStore => {
    const read = async (path: string): Promise<string | null> => {
      if (path === "/state/desired.json") throw Object.assign(new Error(code), { code, syscall: "read" });
      return files.read(path);
    };
    const layer = new Proxy(files, {
      get: (target, key) => {
        if (key === "read") return read;
        const member: unknown = Reflect.get(target, key);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    return new DesiredStore(layer, { folder: "/state", nodeId: OWNER.nodeId });
  };
  const worn = broken("EIO");
  expect(await worn.load()).toEqual({ damaged: true });
  expect(worn.current()?.generation).toBe(7);
  await expect(broken("EACCES").load()).rejects.toThrow("EACCES");
});
