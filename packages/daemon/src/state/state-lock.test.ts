import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockStateFolder } from "./state-lock.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fairlead-lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("a second daemon on the same folder is rejected, and may start when the first has ended", async () => {
  const lock = await lockStateFolder(folder);
  await expect(lockStateFolder(folder)).rejects.toThrow("another fairlead-daemon is using");
  await lock.release();
  await (await lockStateFolder(folder)).release();
});

test("daemons on two folders do not conflict", async () => {
  const other = await mkdtemp(join(tmpdir(), "fairlead-lock-"));
  const locks = [await lockStateFolder(folder), await lockStateFolder(other)];
  for (const lock of locks) await lock.release();
  await rm(other, { recursive: true });
});

test("a killed daemon leaves no lock behind", async () => {
  const module = new URL("./state-lock.ts", import.meta.url).href;
  const script = `const { lockStateFolder } = await import(${JSON.stringify(module)});
    await lockStateFolder(${JSON.stringify(folder)}); process.stdout.write("held"); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  await expect(lockStateFolder(folder)).rejects.toThrow("another fairlead-daemon");
  child.kill("SIGKILL");
  await once(child, "exit");
  await (await lockStateFolder(folder)).release();
});
