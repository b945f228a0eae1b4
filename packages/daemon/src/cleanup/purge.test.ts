import { beforeEach, expect, test } from "vitest";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { MemoryRuntime } from "../runtime/memory-runtime.ts";
import { networkName } from "../runtime/ownership.ts";
import { DurableRecord } from "../state/durable-record.ts";
import { aSpec, OWNER } from "../testing/builders.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { ImageMemory, pulledImagesSchema } from "./image-memory.ts";
import { type PurgeDeps, purge } from "./purge.ts";

let runtime: MemoryRuntime;
let memory: ImageMemory;
let deps: PurgeDeps;
/** By the owner's node. */
let volumesOf: string[];

const plan = async (name: string, image: string, nodeId: string = OWNER.nodeId): Promise<string> => {
  const spec = aSpec({ image });
  const owner = { ...OWNER, nodeId };
  const { workloadId } = spec;
  await runtime.addNetwork({ name: networkName(nodeId, spec), owner, workloadId, internet: true });
  return runtime.create({ spec, name, owner, projectId: "prj_1", generation: 1, secrets: null });
};

beforeEach(async () => {
  const time = new FakeTime();
  runtime = new MemoryRuntime(time);
  const record = new DurableRecord(new MemoryFiles(), "/state/pulled-images.json", pulledImagesSchema);
  memory = new ImageMemory({ record, clock: time, log: silentLog });
  volumesOf = [];
  const removeVolumes = async (owner: { nodeId: string }): Promise<string[]> => {
    volumesOf.push(owner.nodeId);
    return ["fairlead-prj_1-shared"];
  };
  deps = { runtime: Object.assign(runtime, { removeVolumes }), owner: OWNER, memory };
  for (const reference of ["ours:1", "theirs:1"]) {
    runtime.addImage(reference);
    memory.pulled({ id: (await runtime.image(reference))?.id ?? "", reference, workloadId: "wkl_1" });
  }
  runtime.addImage("never-pulled:1");
});

test("a purge removes this node's containers, networks, volumes and images, and lists what others use or own", async () => {
  await runtime.start(await plan("ours", "ours:1"));
  await plan("neighbour", "theirs:1", "node_other");
  expect(await purge(deps)).toEqual({
    containers: ["ours"],
    images: ["ours:1"],
    leftVolumes: ["fairlead-prj_1-shared"],
    leftImages: ["theirs:1"],
  });
  expect(runtime.all().map(({ name }) => name)).toEqual(["neighbour"]);
  expect(await runtime.image("never-pulled:1")).not.toBeNull();
  expect(await runtime.networks(OWNER)).toEqual([]);
  expect(await runtime.networks({ ...OWNER, nodeId: "node_other" })).toHaveLength(1);
  expect(volumesOf).toEqual([OWNER.nodeId]);
});

test("a purge that was interrupted by a container engine outage can be run again", async () => {
  await runtime.start(await plan("ours", "ours:1"));
  runtime.failNext("remove", new RuntimeError("unavailable", "away"));
  await expect(purge(deps)).rejects.toThrow("away");
  expect(await purge(deps)).toMatchObject({ containers: ["ours"], images: ["ours:1", "theirs:1"] });
  expect(await purge(deps)).toMatchObject({ containers: [], images: [] });
});
