import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { WorkloadSecret } from "@fairlead/protocol/secrets";
import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Container } from "../runtime/container-runtime.ts";
import type { MemoryRuntime } from "../runtime/memory-runtime.ts";
import { aDesiredState, aSpec, OWNER } from "../testing/builders.ts";
import { createOnNetwork } from "../testing/create-on-network.ts";
import { eventually, type FakeTime, settle } from "../testing/fake-time.ts";
import type { MemoryFiles } from "../testing/memory-files.ts";
import { type Platform, SecretsMachine } from "./node-secrets.fixture.ts";
import type { NodeSecrets } from "./node-secrets.ts";

const FILE: WorkloadSecret = { name: "TOKEN", as: "file", version: "1.a" };
const ENV: WorkloadSecret = { name: "KEY", as: "env", version: "1.a" };

let machine: SecretsMachine;
let base: string;
let files: MemoryFiles;
let time: FakeTime;
let runtime: MemoryRuntime;
let platform: Platform;
let secrets: NodeSecrets;

beforeEach(async () => {
  machine = await SecretsMachine.create();
  ({ base, files, time, runtime, platform } = machine);
  secrets = await machine.startDaemon();
});
afterEach(async () => {
  await secrets.close();
  machine.remove();
});

const specWith = (...wanted: WorkloadSecret[]): WorkloadSpec => aSpec({ secrets: wanted });
const wants = (...wanted: WorkloadSecret[]): DesiredState => aDesiredState({ workloads: [specWith(...wanted)] });
const set = (name: string, value: string, version?: string): Promise<void> => machine.set(name, value, version);
const ofRegistry = (login: WorkloadSecret, image = "registry.example:5000/team/engine:4"): WorkloadSpec =>
  aSpec({ secrets: [login], image });
const waitsFor = (...wanted: WorkloadSecret[]) =>
  secrets.missing(specWith(...wanted)).map(({ name, why }) => `${name} ${why}`);
const until = (holds: () => boolean): Promise<void> => eventually(holds);
const run = (spec: WorkloadSpec, name = "c1"): Promise<Container> => machine.run(secrets, spec, name);
const placed = (name: string, container = "c1"): string | null => machine.placed(name, container);

describe("secrets of a node", () => {
  test("are fetched once, placed as files with their exact bytes, and set as variables", async () => {
    await set("TOKEN", "a\nb\n\n");
    await set("KEY", " k \n");
    secrets.desiredChanged(wants(FILE, ENV));
    secrets.attach(platform);
    await until(() => waitsFor(FILE, ENV).length === 0);
    const given = await secrets.prepare("c1", specWith(FILE, ENV));
    expect(given).toEqual({ folder: join(base, "run", "c1"), env: { KEY: " k \n" } });
    await run(specWith(FILE, ENV));
    expect(placed("TOKEN")).toBe("a\nb\n\n");
    expect(readdirSync(join(base, "run", "c1"))).toEqual(["TOKEN"]);
    secrets.desiredChanged(wants(FILE, ENV));
    await settle();
    expect(platform.asked).toEqual(["TOKEN", "KEY"]);
  });

  test("that are missing are named with the reason, and delay their container until they arrive", async () => {
    platform.answers.set("OLD", { state: "stale" });
    platform.answers.set("ODD", { state: "sealed", version: "1.a", jwe: "x" });
    const unset: WorkloadSecret = { name: "UNSET", as: "file", version: null };
    const more = ["OLD", "ODD", "GONE"].map((name) => ({ name, as: "file", version: "1.a" }) as const);
    secrets.desiredChanged(wants(unset, ...more));
    expect(waitsFor(unset, ...more)).toContain("OLD has not been delivered yet");
    secrets.attach(platform);
    await until(() => platform.asked.length === 3);
    await settle();
    expect(waitsFor(unset, ...more)).toEqual([
      "UNSET is not set",
      "OLD was encrypted to a former key of this node: set it again",
      "ODD cannot be decrypted by this node",
      "GONE is not set",
    ]);
    expect(secrets.finding()).toMatchObject({ status: "problem", reason: "missing_secrets" });
    for (const name of ["UNSET", "OLD", "ODD", "GONE"]) expect(secrets.finding().message).toContain(name);
    await expect(secrets.prepare("c1", specWith(unset))).rejects.toMatchObject({ kind: "rejected" });
    await set("OLD", "new", "2.b");
    const before = machine.changes;
    const again: WorkloadSecret = { name: "OLD", as: "file", version: "2.b" };
    secrets.desiredChanged(wants(again));
    await until(() => waitsFor(again).length === 0);
    expect(machine.changes).toBeGreaterThan(before);
    expect(await secrets.prepare("c1", specWith(again))).not.toBeNull();
  });

  test("change in the file of a running container, and an earlier value is used until then", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    secrets.observed([await run(specWith(FILE))]);
    await set("TOKEN", "two", "2.b");
    const next = { ...FILE, version: "2.b" };
    secrets.desiredChanged(wants(next));
    expect(waitsFor(next)).toEqual([]);
    await until(() => placed("TOKEN") === "two");
  });

  test("as variables wait for the exact value that the desired state names", async () => {
    await set("KEY", "one");
    secrets.desiredChanged(wants(ENV));
    secrets.attach(platform);
    await until(() => waitsFor(ENV).length === 0);
    platform.down = true;
    const next = { ...ENV, version: "2.b" };
    secrets.desiredChanged(wants(next));
    await settle();
    expect(waitsFor(next)).toEqual(["KEY has not been delivered yet"]);
    platform.down = false;
    await set("KEY", "two", "2.b");
    await time.advance(60_000);
    await until(() => waitsFor(next).length === 0);
    expect((await secrets.prepare("c1", specWith(next)))?.env).toEqual({ KEY: "two" });
  });

  test("are removed from the folder of a container that has ended, and are back before its next start", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    const container = await run(specWith(FILE));
    secrets.observed([container]);
    expect(placed("TOKEN")).toBe("one");
    await time.advance(1000);
    runtime.end("c1", 0);
    secrets.observed(runtime.all());
    await until(() => placed("TOKEN") === null);
    expect(readdirSync(join(base, "run", "c1"))).toEqual([]);
    await secrets.place(container);
    // An observation from before the start must not remove its files.
    secrets.observed(runtime.all());
    await set("OTHER", "x");
    await secrets.prepare("c2", aSpec());
    expect(placed("TOKEN")).toBe("one");
    await runtime.start(container.id);
    secrets.observed(runtime.all());
    await secrets.discard("c2");
    expect(placed("TOKEN")).toBe("one");
  });

  test("of a container that ended while no daemon ran are removed at the daemon's next start", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    await run(specWith(FILE));
    await secrets.close();
    runtime.end("c1", 137);
    secrets = await machine.startDaemon();
    secrets.observed(runtime.all());
    await until(() => placed("TOKEN") === null);
  });

  test("of other nodes on this machine are removed at the daemon's start if their container has ended", async () => {
    const left = (node: string, container: string): string => join(base, "nodes", node, container);
    const past = new Date(time.now() - 120_000);
    for (const [node, name] of [
      ["nod_gone", "c-gone"],
      ["nod_other", "c-ended"],
      ["nod_other", "c-runs"],
      ["nod_other", "c-coming"],
      ["nod_elsewhere", "c-gone"],
    ] as const) {
      mkdirSync(left(node, name), { recursive: true });
      writeFileSync(join(left(node, name), "TOKEN"), "theirs");
      writeFileSync(left(node, ".engine"), node === "nod_elsewhere" ? "another engine" : runtime.id);
      if (name !== "c-coming") utimesSync(left(node, name), past, past);
    }
    utimesSync(left("nod_other", "c-coming"), new Date(time.now()), new Date(time.now()));
    runtime.plant({ name: "c-ended", state: "exited" });
    runtime.plant({ name: "c-runs", state: "running" });
    runtime.available = false;
    secrets.observed([]);
    await secrets.prepare("c2", aSpec());
    expect(existsSync(left("nod_gone", "c-gone"))).toBe(true);
    runtime.available = true;
    secrets.observed([runtime.plant({ name: "c1", state: "running" })]);
    await until(() => !existsSync(left("nod_gone", "c-gone")));
    await until(() => !existsSync(left("nod_other", "c-ended")));
    expect(existsSync(join(base, "nodes", "nod_gone"))).toBe(false);
    expect(readdirSync(join(base, "nodes", "nod_other")).toSorted()).toEqual([".engine", "c-coming", "c-runs"]);
    expect(existsSync(left("nod_elsewhere", "c-gone"))).toBe(true);
  });

  test("that were deleted are removed from the running container's folder and from the disk", async () => {
    await set("TOKEN", "one");
    await set("OTHER", "kept");
    const other: WorkloadSecret = { name: "OTHER", as: "file", version: "1.a" };
    secrets.desiredChanged(wants(FILE, other));
    secrets.attach(platform);
    await until(() => waitsFor(FILE, other).length === 0);
    secrets.observed([await run(specWith(FILE, other))]);
    secrets.desiredChanged(wants({ ...FILE, version: null }, other));
    await until(() => placed("TOKEN") === null);
    expect(placed("OTHER")).toBe("kept");
    await secrets.close();
    for (const path of files.paths()) expect(await files.read(path)).not.toContain("TOKEN");
  });

  test("are removed with their container, however it was removed", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    await run(specWith(FILE), "c1");
    const second = await run(specWith(FILE), "c2");
    await secrets.discard("c1");
    expect(readdirSync(join(base, "run"))).toEqual(["c2"]);
    secrets.observed([second]);
    await settle();
    secrets.observed([]);
    await until(() => readdirSync(join(base, "run")).length === 0);
  });

  test("of a container that is being created are not treated as leftovers", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    await secrets.prepare("c1", specWith(FILE));
    secrets.observed([]);
    await secrets.close();
    expect(readdirSync(join(base, "run"))).toEqual(["c1"]);
  });

  test("are available after a reboot without the control plane: the folder is filled before the container starts", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    const { id, name } = await run(specWith(FILE));
    await secrets.close();
    rmSync(join(base, "run"), { recursive: true });
    secrets = await machine.startDaemon();
    secrets.desiredChanged(wants(FILE));
    expect(waitsFor(FILE)).toEqual([]);
    await secrets.place({ id, name });
    expect(placed("TOKEN")).toBe("one");
  });

  test("of a container with an older spec are kept, and a start without one fails with its name", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    const former = await run(specWith(FILE));
    secrets.desiredChanged(wants());
    secrets.observed([former]);
    await settle();
    await secrets.place(former);
    expect(placed("TOKEN")).toBe("one");
    secrets.desiredChanged(wants({ ...FILE, version: null }));
    await until(() => placed("TOKEN") === null);
    await expect(secrets.place(former)).rejects.toThrow("the secret TOKEN, which is not set");
  });

  test("survive a broken link: what failed is requested again", async () => {
    platform.down = true;
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => platform.asked.length === 1);
    platform.down = false;
    await time.advance(60_000);
    await until(() => waitsFor(FILE).length === 0);
  });

  test("that cannot be placed are reported, and placed once they can be", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    const container = await run(specWith(FILE));
    rmSync(join(base, "run"), { recursive: true });
    writeFileSync(join(base, "run"), "in the way");
    secrets.observed([container]);
    await until(() => secrets.finding().reason === "not_placed");
    await expect(secrets.place(container)).rejects.toMatchObject({ kind: "rejected" });
    rmSync(join(base, "run"));
    secrets.observed([container]);
    await until(() => placed("TOKEN") === "one" && secrets.finding().reason !== "not_placed");
  });

  test("that no workload uses cause no problem: a folder that cannot be created delays no container", async () => {
    writeFileSync(join(base, "run"), "in the way");
    secrets.desiredChanged(wants());
    const container = await run(aSpec());
    secrets.observed([container]);
    await settle();
    await secrets.close();
    expect(secrets.finding()).toMatchObject({ status: "ok" });
  });

  test("on a disk are reported", async () => {
    await set("TOKEN", "one");
    secrets.desiredChanged(wants(FILE));
    secrets.attach(platform);
    await until(() => waitsFor(FILE).length === 0);
    secrets.observed([await run(specWith(FILE))]);
    await until(() => secrets.finding().reason === "on_disk");
    expect(secrets.finding().message).toContain("--runtime-dir");
  });

  test("that contain a NUL cannot be variables, and are not shown in the error", async () => {
    await set("KEY", "canary\0value");
    secrets.desiredChanged(wants(ENV));
    secrets.attach(platform);
    await until(() => waitsFor(ENV).length === 0);
    const refusal = await secrets.prepare("c1", specWith(ENV)).catch((error: unknown) => String(error));
    expect(refusal).toContain("KEY");
    expect(refusal).not.toContain("canary");
  });

  test("log in to a registry for the pull only", async () => {
    const login: WorkloadSecret = { name: "REG", as: "registry", version: "1.a" };
    await set("REG", "registry.example:5000 robot:pa:ss\n");
    secrets.desiredChanged(wants(login));
    await expect(secrets.registryAuth(ofRegistry(login))).rejects.toThrow("REG");
    secrets.attach(platform);
    await until(() => waitsFor(login).length === 0);
    expect(await secrets.registryAuth(ofRegistry(login))).toEqual({ username: "robot", password: "pa:ss" });
    expect(await secrets.registryAuth(specWith(FILE))).toBeNull();
    expect(await secrets.prepare("c1", ofRegistry(login))).toEqual({ folder: join(base, "run", "c1"), env: {} });
    await set("REG", "canary-without-colon", "2.b");
    secrets.desiredChanged(wants({ ...login, version: "2.b" }));
    const before = machine.changes;
    await until(() => machine.changes > before);
    const refusal = await secrets.registryAuth(ofRegistry(login)).catch((error: unknown) => String(error));
    expect(refusal).toContain("registry.example.com username:password");
    expect(refusal).not.toContain("canary");
  });

  test("whose login changed make a pull wait for the new login, and use the old one if it cannot be fetched", async () => {
    const login: WorkloadSecret = { name: "REG", as: "registry", version: "1.a" };
    const next: WorkloadSecret = { ...login, version: "2.b" };
    await set("REG", "registry.example:5000 robot:old");
    secrets.desiredChanged(wants(login));
    secrets.attach(platform);
    await until(() => waitsFor(login).length === 0);
    platform.down = true;
    secrets.desiredChanged(wants(next));
    expect(await secrets.registryAuth(ofRegistry(next))).toEqual({ username: "robot", password: "old" });
    secrets.detach();
    secrets.desiredChanged(wants(next));
    expect(await secrets.registryAuth(ofRegistry(next))).toEqual({ username: "robot", password: "old" });
    platform.down = false;
    await set("REG", "registry.example:5000 robot:new", "2.b");
    secrets.attach(platform);
    expect(await secrets.registryAuth(ofRegistry(next))).toEqual({ username: "robot", password: "new" });
  });
});

describe("the daemon's own files", () => {
  const own = (name: string): string => join(base, "run", "c1", name);

  test("are in the folder of every container of their workload, and are replaced in place", async () => {
    const spec = aSpec();
    expect(await secrets.prepare("c1", spec)).toEqual({ folder: join(base, "run", "c1"), env: {} });
    const container = { name: "c1", spec, projectId: "prj_1", generation: 1, owner: OWNER, secrets: null };
    await createOnNetwork(runtime, container);
    secrets.put(spec.workloadId, "gateway-token", Buffer.from("one"));
    secrets.put("another-workload", "gateway-token", Buffer.from("theirs"));
    const containers = await runtime.list(OWNER);
    secrets.observed(containers);
    await until(() => existsSync(own("gateway-token")));
    expect(readFileSync(own("gateway-token"), "utf8")).toBe("one");
    secrets.put(spec.workloadId, "gateway-token", Buffer.from("two"));
    await until(() => readFileSync(own("gateway-token"), "utf8") === "two");
    expect(readdirSync(join(base, "run", "c1"))).toEqual(["gateway-token"]);
  });
});
