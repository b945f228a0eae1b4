import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { aSpec } from "../testing/builders.ts";
import type { ContainerPlan, ContainerRuntime, LogLine, LogOptions, Owner } from "./container-runtime.ts";
import { containerWorkload, LABELS, networkName } from "./ownership.ts";

export interface RuntimeHarness {
  readonly runtime: ContainerRuntime;
  readonly owner: Owner;
  /** A local image that runs until it is stopped. */
  readonly image: string;
  /** A command in that image that exits immediately with code 3. */
  readonly endsWithThree: Pick<WorkloadSpec, "command" | "args">;
  /** An image that does not exist in any registry. */
  readonly missingImage: string;
  /** Creates a foreign container with this name; the harness removes it. */
  readonly plantForeign: (name: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Contract of container engines. */
export function containerRuntimeContract(open: () => Promise<RuntimeHarness>): void {
  let harness: RuntimeHarness;
  let plan: (overrides?: Partial<WorkloadSpec>, name?: string) => ContainerPlan;
  beforeEach(async () => {
    harness = await open();
    const prefix = `fairlead-contract-${harness.owner.nodeId}`;
    plan = (overrides = {}, name = "engine") => ({
      spec: aSpec({ image: harness.image, ...overrides }),
      name: `${prefix}-${name}`,
      owner: harness.owner,
      projectId: "prj_contract",
      generation: 7,
      secrets: null,
    });
  });
  afterEach(() => harness.close());
  const addNetwork = (internet = true): Promise<void> => {
    const { owner, runtime } = harness;
    const name = networkName(owner.nodeId, aSpec({ network: { internet } }));
    return runtime.addNetwork({ name, owner, workloadId: "wkl_engine", internet });
  };
  const create = async (of: ContainerPlan = plan()): Promise<string> => {
    await addNetwork();
    return harness.runtime.create(of);
  };

  describe("a container", () => {
    test("is created, started, stopped and removed, and each step may be repeated", async () => {
      const { runtime, owner } = harness;
      const id = await create(plan());
      expect(await runtime.list(owner)).toMatchObject([
        { id, name: plan().name, state: "created", startedAt: null, hostPort: null },
      ]);

      await runtime.start(id);
      await runtime.start(id);
      const [running] = await runtime.list(owner);
      expect(running).toMatchObject({ state: "running", startedAt: expect.any(String), image: harness.image });
      expect(running?.hostPort).toBeGreaterThan(1023);

      await runtime.stop(id, 1);
      await runtime.stop(id, 1);
      expect(await runtime.list(owner)).toMatchObject([
        { state: "exited", finishedAt: expect.any(String), hostPort: null },
      ]);

      await runtime.start(id);
      expect(await runtime.list(owner)).toMatchObject([{ state: "running" }]);
      await runtime.stop(id, 1);
      await runtime.remove(id);
      await runtime.remove(id);
      expect(await runtime.list(owner)).toEqual([]);
    });

    test("records its owner, and does not appear in another owner's list", async () => {
      const { runtime, owner } = harness;
      await create(plan());
      const [container] = await runtime.list(owner);
      expect(container && containerWorkload(container)).toBe("wkl_engine");
      expect(container?.labels).toMatchObject({ [LABELS.generation]: "7", [LABELS.spec]: aSpec().specHash });
      expect(await runtime.list({ ...owner, nodeId: "nod_other" })).toEqual([]);
      expect(await runtime.list({ ...owner, installationId: "ins_other" })).toEqual([]);
    });

    test("runs as a numeric user ID, known even before it has run", async () => {
      const id = await create(plan());
      expect(await harness.runtime.userOf(id)).toBe(0);
      await expect(harness.runtime.userOf("nowhere")).rejects.toMatchObject({ kind: "not-found" });
    });

    test("that ends by itself reports its exit code", async () => {
      const { runtime, owner } = harness;
      await runtime.start(await create(plan(harness.endsWithThree)));
      await vi.waitFor(
        async () => expect(await runtime.list(owner)).toMatchObject([{ state: "exited", exitCode: 3 }]),
        5000,
      );
    });

    test("has readable last output", async () => {
      const { runtime } = harness;
      const id = await create(plan());
      await runtime.start(id);
      await vi.waitFor(async () => expect(await runtime.logs(id, 10)).toContain("output of"), 5000);
    });
  });

  describe("the output of a container", () => {
    const read = async (options: Partial<LogOptions>, signal = new AbortController().signal): Promise<LogLine[]> => {
      const id = await create(plan());
      await harness.runtime.start(id);
      await vi.waitFor(async () => expect(await harness.runtime.logs(id, 10)).toContain("output of"), 5000);
      const lines: LogLine[] = [];
      const all = harness.runtime.followLogs(id, { since: null, tail: null, follow: false, ...options }, signal);
      for await (const line of all) lines.push(line);
      return lines;
    };

    test("arrives line by line, each with its time and its stream", async () => {
      const [line] = await read({});
      expect(line).toMatchObject({ stream: "stdout", text: expect.stringMatching(/^output of /) });
      expect(Date.parse(line?.at ?? "")).toBeGreaterThan(0);
    });

    test("is limited to the last lines, and to new ones", async () => {
      expect(await read({ tail: 0 })).toEqual([]);
    });

    test("is not read for a caller that has already left", async () => {
      expect(await read({ follow: true }, AbortSignal.abort())).toEqual([]);
    });

    test("is an error if the container does not exist", async () => {
      const { signal } = new AbortController();
      const lines = harness.runtime.followLogs("no-such-container", { since: null, tail: null, follow: false }, signal);
      await expect(lines[Symbol.asyncIterator]().next()).rejects.toMatchObject({ kind: "not-found" });
    });
  });

  describe("networks", () => {
    test("are added, listed and removed, and each step may be repeated", async () => {
      const { runtime, owner } = harness;
      await addNetwork();
      await addNetwork();
      await addNetwork(false);
      const networks = await runtime.networks(owner);
      expect(networks.map(({ name }) => name).toSorted()).toEqual(
        [true, false].map((internet) => networkName(owner.nodeId, aSpec({ network: { internet } }))).toSorted(),
      );
      expect(networks[0]).toMatchObject({
        workloadId: "wkl_engine",
        gateway: expect.stringMatching(/^198\.19\.\d+\.\d+$/),
        subnet: expect.stringMatching(/^198\.19\.\d+\.\d+\/29$/),
      });
      expect(new Set(networks.map(({ subnet }) => subnet)).size).toBe(2);
      expect(await runtime.networks({ ...owner, nodeId: "nod_other" })).toEqual([]);
      for (const { id } of [...networks, ...networks]) await runtime.removeNetwork(id);
      expect(await runtime.networks(owner)).toEqual([]);
    });

    test("contain the container of their workload, and stay while it runs", async () => {
      const { runtime, owner } = harness;
      const id = await create();
      await runtime.start(id);
      const [network] = await runtime.networks(owner);
      expect(await runtime.list(owner)).toMatchObject([{ network: network?.name }]);
      await expect(runtime.removeNetwork(network?.id ?? "")).rejects.toMatchObject({ kind: "rejected" });
      await runtime.stop(id, 1);
      await runtime.removeNetwork(network?.id ?? "");
      await expect(runtime.start(id)).rejects.toMatchObject({ kind: "not-found" });
    });

    test("are required before a container can be created", async () => {
      await expect(harness.runtime.create(plan())).rejects.toMatchObject({ kind: "not-found" });
    });
  });

  describe("names", () => {
    test("that are in use are a conflict, and an inspection by name shows the owner", async () => {
      const { runtime } = harness;
      await create(plan());
      await expect(create(plan())).rejects.toMatchObject({ kind: "conflict" });
      await harness.plantForeign(plan({}, "foreign").name);
      await expect(create(plan({}, "foreign"))).rejects.toMatchObject({ kind: "conflict" });
      const foreign = await runtime.inspect(plan({}, "foreign").name);
      expect(foreign?.labels[LABELS.node]).toBeUndefined();
    });

    test("that do not exist are null for an inspection and an error for a change", async () => {
      const { runtime } = harness;
      expect(await runtime.inspect("fairlead-contract-none")).toBeNull();
      await expect(runtime.start("fairlead-contract-none")).rejects.toMatchObject({ kind: "not-found" });
    });
  });

  describe("images", () => {
    test("that are present have an ID, and absent ones are null", async () => {
      const { runtime } = harness;
      expect((await runtime.image(harness.image))?.id).toMatch(/^sha256:/);
      expect(await runtime.image(harness.missingImage)).toBeNull();
      for (const noName of [
        "example/engine@",
        "Example/Engine:1",
        "a:b:c",
        "https://ghcr.io/example/engine:1",
        "../info",
      ]) {
        expect(await runtime.image(noName), noName).toBeNull();
      }
    });

    test("that are absent cause a specific error when a container is created", async () => {
      await expect(create(plan({ image: harness.missingImage }))).rejects.toMatchObject({
        kind: "no-such-image",
      });
    });

    test("in use are reported as such, and cannot be removed", async () => {
      const { runtime } = harness;
      await runtime.start(await create(plan()));
      const image = await runtime.image(harness.image);
      expect(await runtime.imagesInUse()).toContain(image?.id);
      await expect(runtime.removeImage(harness.image)).rejects.toMatchObject({ kind: "conflict" });
      expect(await runtime.image(harness.image)).toEqual(image);
    });

    test("that are absent can be removed without an error", async () => {
      await harness.runtime.removeImage(harness.missingImage);
    });

    test("that cannot be pulled are reported", async () => {
      const { signal } = new AbortController();
      const options = { credentials: null, onProgress: () => undefined, inactivityMs: 10_000, signal };
      await expect(harness.runtime.pull(harness.missingImage, options)).rejects.toMatchObject({ kind: "pull-failed" });
    });
  });

  test("a watcher is notified of changes until it is stopped", async () => {
    const { runtime, owner } = harness;
    const stop = new AbortController();
    const heard = vi.fn();
    runtime.watch(owner, heard, stop.signal);
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 5000);
    heard.mockClear();
    await runtime.start(await create(plan()));
    await vi.waitFor(() => expect(heard).toHaveBeenCalled(), 5000);
    stop.abort();
  });

  test("the container engine reports its version", async () => {
    expect((await harness.runtime.version()).version).not.toBe("");
  });
}
