import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gpuSchema } from "@fairlead/protocol/daemon-link";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseGpus, readGpus } from "./gpus.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-gpus-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** A fake nvidia-smi. */
async function program(script: string): Promise<string> {
  const path = join(folder, "nvidia-smi");
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}

test("the GPUs that the driver reports are found, with their memory", async () => {
  const command = await program(`[ "$1" = --query-gpu=uuid,name,memory.total ] || exit 9
echo 'GPU-11, NVIDIA L4, 23034'
echo 'GPU-22, NVIDIA A100, SXM4, 40960'`);
  expect(await readGpus(command)).toEqual({
    state: "present",
    gpus: [
      { id: "GPU-11", name: "NVIDIA L4", memoryMb: 23_034 },
      { id: "GPU-22", name: "NVIDIA A100, SXM4", memoryMb: 40_960 },
    ],
  });
});

test("a machine without the driver has none, and this is not a fault", async () => {
  expect(await readGpus(join(folder, "nvidia-smi"))).toEqual({ state: "absent" });
});

test("a driver that fails is reported with the reason (nvidia-container-toolkit#48)", async () => {
  const command = await program("echo 'Failed to initialize NVML: Unknown Error'; exit 255");
  expect(await readGpus(command)).toEqual({ state: "broken", reason: "Failed to initialize NVML: Unknown Error" });
});

test("invalid lines are ignored", () => {
  expect(parseGpus("\nNo devices were found\nGPU-1, X, [N/A]\n")).toEqual([{ id: "GPU-1", name: "X", memoryMb: 0 }]);
});

test("IDs and names of any length are reported in a form that the control plane accepts", () => {
  const [gpu] = parseGpus(`${"i".repeat(500)}, ${"n".repeat(500)}, -1`);
  expect(gpuSchema.parse(gpu)).toEqual(gpu);
});
