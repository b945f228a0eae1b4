import { beforeEach, describe, expect, test } from "vitest";
import type { DiskSpace } from "../host/disk-rules.ts";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { MemoryRuntime } from "../runtime/memory-runtime.ts";
import { DurableRecord } from "../state/durable-record.ts";
import { aDesiredState, aSpec } from "../testing/builders.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { ImageCleaner } from "./image-cleaner.ts";
import { ImageMemory, pulledImagesSchema } from "./image-memory.ts";

const HOUR = 60 * 60_000;
const GIB = 1024 ** 3;
let time: FakeTime;
let runtime: MemoryRuntime;
let files: MemoryFiles;
let memory: ImageMemory;
let events: string[];
/** For a disk of 100 GiB and images of 10 GiB each. */
let otherBytes: number;
let desired = aDesiredState();

const openMemory = async (): Promise<ImageMemory> => {
  const record = new DurableRecord(files, "/state/pulled-images.json", pulledImagesSchema);
  const opened = new ImageMemory({ record, clock: time, log: silentLog });
  await opened.load();
  return opened;
};
const present = async (): Promise<string[]> => {
  const here = await Promise.all(names.map(async (name) => ((await runtime.image(name)) ? [name] : [])));
  return here.flat();
};
let names: string[];
const readSpace = async (): Promise<DiskSpace> => ({
  totalBytes: 100 * GIB,
  freeBytes: 100 * GIB - otherBytes - (await present()).length * 10 * GIB,
});
const cleaner = (): ImageCleaner =>
  new ImageCleaner({
    runtime,
    memory,
    readSpace,
    desired: () => desired,
    clock: time,
    timers: time,
    log: silentLog,
    onEvent: (kind, _workloadId, message) => events.push(`${kind}: ${message}`),
  });
const pulled = async (name: string): Promise<void> => {
  names.push(name);
  runtime.addImage(name);
  const image = await runtime.image(name);
  memory.pulled({ id: image?.id ?? "", reference: name, workloadId: "wkl_engine" });
  await time.advance(HOUR);
};

beforeEach(async () => {
  time = new FakeTime();
  runtime = new MemoryRuntime(time);
  files = new MemoryFiles();
  names = [];
  events = [];
  otherBytes = 40 * GIB;
  memory = await openMemory();
  for (const name of ["v1", "v2", "v3", "v4", "v5"]) await pulled(name);
  desired = aDesiredState({ workloads: [aSpec({ image: "v5" })] });
  await time.advance(2 * HOUR);
});

describe("a pass", () => {
  test("removes images from the upper mark down to the lower one, and no further", async () => {
    await cleaner().clean(false);
    expect(await present()).toEqual(["v2", "v3", "v4", "v5"]);
    expect(events).toEqual(["images_removed: 10.0 GiB of 10.0 GiB freed, 1 images removed, 0 left in use: v1"]);
  });

  test("does nothing below the upper mark, unless a pull has found no room", async () => {
    otherBytes = 33 * GIB;
    await cleaner().clean(false);
    expect(await present()).toHaveLength(5);
    await cleaner().clean(true);
    expect(await present()).toHaveLength(4);
  });

  test("skips an image that turns out to be in use, and continues (kubernetes#57006)", async () => {
    runtime.failNext("removeImage", new RuntimeError("conflict", "image is being used by running container"));
    await cleaner().clean(false);
    expect(await present()).toEqual(["v1", "v3", "v4", "v5"]);
    expect(events[0]).toContain("1 left in use");
  });

  test("keeps images that run, are wanted or are needed for a rollback, however full the disk is", async () => {
    otherBytes = 60 * GIB;
    runtime.plant({ name: "theirs", imageId: "sha256:v1", state: "exited" });
    await cleaner().clean(false);
    expect(await present()).toEqual(["v1", "v4", "v5"]);
  });

  test("removes no image that this daemon did not pull, or has forgotten", async () => {
    memory = await openMemory();
    for (const image of memory.list()) memory.forget(image);
    otherBytes = 60 * GIB;
    await cleaner().clean(false);
    expect(await present()).toHaveLength(5);
  });

  test("removes no name that now belongs to another image, and no image that someone else has named", async () => {
    runtime.addImage("v1", { id: "sha256:built-here" });
    runtime.addImage("mine", { id: "sha256:v1" });
    await cleaner().clean(false);
    expect(await runtime.image("v1")).toMatchObject({ id: "sha256:built-here" });
    expect(await runtime.image("mine")).toMatchObject({ id: "sha256:v1" });
    expect(memory.list().map(({ reference }) => reference)).not.toContain("v1");
  });

  test("fails and changes nothing while the container engine is unavailable", async () => {
    runtime.available = false;
    await expect(cleaner().clean(false)).rejects.toMatchObject({ kind: "unavailable" });
    expect(memory.list()).toHaveLength(5);
  });
});

test("pulled and used images are remembered across a restart", async () => {
  await memory.close();
  memory = await openMemory();
  expect(memory.list().map(({ reference }) => reference)).toEqual(["v1", "v2", "v3", "v4", "v5"]);
  memory.used([runtime.plant({ name: "c", imageId: "sha256:v1" })], desired);
  await memory.close();
  const used = (await openMemory()).list().filter(({ lastUsedAt }) => lastUsedAt === time.now());
  expect(used.map(({ reference }) => reference)).toEqual(["v1", "v5"]);
});

test("a damaged record of images costs disk space, never an image", async () => {
  await memory.close();
  for (const path of ["/state/pulled-images.json", "/state/pulled-images.json.copy"]) files.put(path, "{");
  memory = await openMemory();
  otherBytes = 60 * GIB;
  await cleaner().clean(false);
  expect(await present()).toHaveLength(5);
});

test("the cleaner checks every five minutes, and immediately on request", async () => {
  const running = cleaner();
  const done = running.run();
  await time.advance(4 * 60_000);
  expect(await present()).toHaveLength(5);
  await time.advance(2 * 60_000);
  expect(await present()).toHaveLength(4);
  otherBytes = 45 * GIB;
  running.wake();
  await time.advance(0);
  expect(await present()).toHaveLength(3);
  running.close();
  await done;
});
