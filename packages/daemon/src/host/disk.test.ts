import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FakeTime } from "../testing/fake-time.ts";
import { DiskRoom, readDiskSpace } from "./disk.ts";
import type { DiskSpace } from "./disk-rules.ts";

const GIB = 1024 ** 3;

test("the space of a folder is read, or that of its parent while the folder does not exist", async () => {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-disk-"));
  const space = await readDiskSpace(folder);
  expect(space?.totalBytes).toBeGreaterThan(space?.freeBytes ?? 0);
  expect((await readDiskSpace(join(folder, "a/b/c")))?.totalBytes).toBe(space?.totalBytes);
  await rm(folder, { recursive: true });
});

function room(space: { now: DiskSpace | null }) {
  const time = new FakeTime();
  let refused = 0;
  let reads = 0;
  const readSpace = async () => {
    reads += 1;
    return space.now;
  };
  const made = new DiskRoom({ readSpace, clock: time, onRefused: () => (refused += 1) });
  return { made, time, refused: () => refused, reads: () => reads };
}

test("a pull that would break the reserve is rejected, and this is remembered until a pull succeeds", async () => {
  const space = { now: { totalBytes: 100 * GIB, freeBytes: 3 * GIB } };
  const { made, refused } = room(space);
  await made.require(GIB);
  expect(made.refusal).toBeNull();
  await expect(made.require(3 * GIB)).rejects.toMatchObject({ kind: "no-room" });
  expect(made.refusal).toContain("3.0 GiB free");
  expect(refused()).toBe(1);
  made.pulled();
  expect(made.refusal).toBeNull();
});

test("a rejection that is not repeated expires after a while", async () => {
  const { made, time } = room({ now: { totalBytes: 100 * GIB, freeBytes: 0 } });
  await expect(made.require(0)).rejects.toThrow("too little disk space");
  await time.advance(10 * 60_000);
  expect(made.refusal).toBeNull();
});

test("the disk is read at most once a second, and nothing is rejected when it cannot be read", async () => {
  const space: { now: DiskSpace | null } = { now: null };
  const { made, time, reads } = room(space);
  for (let asked = 0; asked < 50; asked++) await made.require(GIB);
  expect(reads()).toBe(1);
  await time.advance(1000);
  space.now = { totalBytes: 100 * GIB, freeBytes: 0 };
  await expect(made.require(0)).rejects.toThrow();
});
