import type { WorkloadSecret } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Container } from "../runtime/container-runtime.ts";
import { aDesiredState, anAgent, aSpec } from "../testing/builders.ts";
import { eventually, settle } from "../testing/fake-time.ts";
import { SecretsMachine } from "./node-secrets.fixture.ts";
import type { NodeSecrets } from "./node-secrets.ts";

let machine: SecretsMachine;
let secrets: NodeSecrets;

beforeEach(async () => {
  machine = await SecretsMachine.create();
  secrets = await machine.startDaemon();
});
afterEach(async () => {
  await secrets.close();
  machine.remove();
});

const set = (name: string, value: string): Promise<void> => machine.set(name, value);
const until = (holds: () => boolean): Promise<void> => eventually(holds);
const run = (spec: WorkloadSpec, name = "c1"): Promise<Container> => machine.run(secrets, spec, name);
const placed = (name: string, container = "c1"): string | null => machine.placed(name, container);

/** Files on the daemon's disk. */
async function onDisk(): Promise<string> {
  const { files } = machine;
  return (await Promise.all(files.paths().map((path) => files.read(path)))).join();
}

describe("secrets of agents", () => {
  const ENGINE = aSpec({ secrets: [{ name: "TOKEN", as: "file", version: "1.a" }] });
  const theirs = (agent: string, more: Partial<WorkloadSecret> = {}): WorkloadSecret => {
    return { name: "TOKEN", key: `${agent}.TOKEN`, as: "file", version: "1.a", ...more };
  };

  test("with the same name are separate for each agent and the engine, and are reported with their owner", async () => {
    await set("TOKEN", "the engine's");
    await set("agt_a.TOKEN", "a's");
    await set("agt_b.TOKEN", "b's");
    const a = anAgent({ workloadId: "agt_a", workerToken: false, secrets: [theirs("agt_a")] });
    const b = anAgent({ workloadId: "agt_b", workerToken: false, secrets: [theirs("agt_b", { as: "env" })] });
    secrets.desiredChanged(aDesiredState({ workloads: [ENGINE, a, b] }));
    expect(secrets.finding().message).toContain("TOKEN of agent-a has not been delivered yet");
    secrets.attach(machine.platform);
    await until(() => [ENGINE, a, b].every((spec) => secrets.missing(spec).length === 0));
    expect(machine.platform.asked.toSorted()).toEqual(["TOKEN", "agt_a.TOKEN", "agt_b.TOKEN"]);
    await run(ENGINE, "engine");
    await run(a, "a");
    expect([placed("TOKEN", "engine"), placed("TOKEN", "a")]).toEqual(["the engine's", "a's"]);
    expect((await secrets.prepare("b", b))?.env).toEqual({ TOKEN: "b's" });
    expect(await onDisk()).not.toContain("a's");
  });

  test("are forgotten with the agent, and the engine's secret of the same name stays", async () => {
    await set("TOKEN", "the engine's");
    await set("agt_a.TOKEN", "a's");
    const a = anAgent({ workloadId: "agt_a", workerToken: false, secrets: [theirs("agt_a")] });
    secrets.desiredChanged(aDesiredState({ workloads: [ENGINE, a] }));
    secrets.attach(machine.platform);
    await until(() => [ENGINE, a].every((spec) => secrets.missing(spec).length === 0));
    const engine = await run(ENGINE, "engine");
    secrets.observed([engine, await run(a, "a")]);
    await settle();
    secrets.desiredChanged(aDesiredState({ workloads: [ENGINE] }));
    secrets.observed([engine]);
    await until(() => placed("TOKEN", "a") === null);
    await secrets.close();
    expect(await onDisk()).toContain('"TOKEN"');
    expect(await onDisk()).not.toContain("agt_a");
    expect(placed("TOKEN", "engine")).toBe("the engine's");
  });
});

describe("the token of a workload", () => {
  const TOKEN_FILE = "fairlead-token";
  const agent = anAgent();
  const token = (value: string): void => secrets.put(agent.workloadId, TOKEN_FILE, Buffer.from(value));

  beforeEach(() => {
    secrets.desiredChanged(aDesiredState({ workloads: [agent] }));
  });

  test("arrives before the workload starts, which waits for it; this is not a problem of the machine", async () => {
    expect(secrets.missing(agent)).toMatchObject([{ name: TOKEN_FILE }]);
    expect(secrets.finding()).toMatchObject({ status: "ok" });
    await expect(secrets.prepare("c1", agent)).rejects.toMatchObject({ kind: "rejected" });
    const before = machine.changes;
    token("one");
    expect(machine.changes).toBe(before + 1);
    expect(secrets.missing(agent)).toEqual([]);
    await run(agent);
    expect(placed(TOKEN_FILE)).toBe("one");
  });

  test("is renewed in place while the workload runs, and is removed from its folder when it is withdrawn", async () => {
    token("one");
    secrets.observed([await run(agent)]);
    token("two");
    await until(() => placed(TOKEN_FILE) === "two");
    secrets.withdraw(agent.workloadId, TOKEN_FILE);
    await until(() => placed(TOKEN_FILE) === null);
    expect(secrets.missing(agent)).toHaveLength(1);
  });

  test("stays in place when the daemon restarts, and is valid until another arrives", async () => {
    token("one");
    const container = await run(agent);
    await secrets.close();
    secrets = await machine.startDaemon();
    secrets.desiredChanged(aDesiredState({ workloads: [agent] }));
    expect(secrets.missing(agent)).toHaveLength(1);
    secrets.observed([container]);
    await until(() => secrets.missing(agent).length === 0);
    await settle();
    expect(placed(TOKEN_FILE)).toBe("one");
    await secrets.place(container);
  });

  test("that was withdrawn is not read from the folder again", async () => {
    token("one");
    const container = await run(agent);
    secrets.observed([container]);
    secrets.withdraw(agent.workloadId, TOKEN_FILE);
    await until(() => placed(TOKEN_FILE) === null);
    secrets.observed([container]);
    await settle();
    expect(secrets.missing(agent)).toHaveLength(1);
    await expect(secrets.place(container)).rejects.toThrow(TOKEN_FILE);
  });

  test("is never given to an engine", async () => {
    token("one");
    await run(aSpec(), "engine");
    expect(placed(TOKEN_FILE, "engine")).toBeNull();
  });
});
