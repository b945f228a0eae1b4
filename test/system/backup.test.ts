import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { DesiredState } from "@fairlead/protocol/workload";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { DesiredStore } from "../../packages/daemon/src/state/desired-store.ts";
import { diskFiles } from "../../packages/daemon/src/state/files.ts";
import { CommandLine } from "../support/command-line.ts";
import { FleetStage } from "../support/fleet-stage.ts";
import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 30_000;
const DOLLARS = 1_000_000_000;

const projectsSchema = z.object({ projects: z.array(z.object({ id: z.string() })) });
const keySchema = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) });
const backupSchema = z.object({ file: z.string(), epoch: z.string(), alsoKeep: z.array(z.string()) });
const restoreSchema = z.object({
  epoch: z.string().nullable(),
  replaced: z.string().nullable(),
  sessions: z.number(),
  recheck: z.array(z.object({ what: z.string(), items: z.array(z.string()) })),
});
type Key = z.infer<typeof keySchema>["key"];

/** The daemon's own link and its own judgement of desired states, on a control plane in a process of its own. */
let stage: FleetStage;
let daemon: SimulatedDaemon;
let held: DesiredStore;
let projectId: string;
const commands = new CommandLine();

beforeAll(async () => {
  stage = await FleetStage.start({ nodes: 1, settings: { billing: { mode: "prepaid" } } });
  const [node] = stage.nodes;
  if (node === undefined) throw new Error("there is no node");
  held = new DesiredStore(diskFiles, { folder: stage.dir, nodeId: node.identity.nodeId });
  daemon = new SimulatedDaemon(node, { tunnel: false, onState: (state: DesiredState) => void held.offer(state) });
  const page = projectsSchema.parse(await stage.call("GET", "/v1/projects"));
  projectId = page.projects[0]?.id ?? "";
});

afterAll(async () => {
  await daemon?.close();
  await stage?.remove();
  commands.remove();
});

async function createKey(name: string): Promise<Key> {
  return keySchema.parse(await stage.call("POST", `/v1/projects/${projectId}/keys`, { projectId, name })).key;
}

async function works({ keyValue }: Key): Promise<boolean> {
  const headers = { authorization: `Bearer ${keyValue}` };
  return (await fetch(`${stage.modelsUrl}/v1/models`, { headers })).ok;
}

function addCredits(amountNanoDollars: number): Promise<unknown> {
  return stage.call("POST", `/v1/projects/${projectId}/credits`, { amountNanoDollars });
}

async function fairlead(...argv: readonly string[]): Promise<unknown> {
  const { code, out, notes } = await commands.run(...argv, "--config", join(stage.dir, "config.yaml"), "--json");
  expect({ argv, code, notes }).toMatchObject({ code: 0 });
  return JSON.parse(out);
}

test("a backup of a busy server restores keys and money, daemons follow the restored state, and sessions end", async () => {
  const nodeId = stage.nodes[0]?.identity.nodeId ?? "";
  const [kept, deleted] = [await createKey("kept"), await createKey("deleted later")];
  await addCredits(5 * DOLLARS);
  await waitFor("the desired state", WAIT_MS, async () => held.current() !== null);
  const then = held.current();

  let busy = true;
  const load = (async () => {
    const made: Key[] = [];
    while (busy) made.push(await createKey(`busy ${made.length}`));
    return made;
  })();
  const backup = backupSchema.parse(await fairlead("backup", "--to", `${stage.dir}/backups/`));
  busy = false;
  const made = await load;
  expect(made.length).toBeGreaterThan(0);
  expect(backup.alsoKeep).toContain(join(stage.dir, "data", "master.key"));
  expect(readdirSync(join(stage.dir, "data", "snapshots"))).toEqual([]);

  await stage.call("DELETE", `/v1/projects/${projectId}/keys/${deleted.id}`);
  await waitFor("the deleted key's end", WAIT_MS, async () => !(await works(deleted)));
  const later = await createKey("made later");
  await addCredits(DOLLARS);
  await stage.call("PATCH", `/v1/nodes/${nodeId}`, {
    node: { engineConfig: { preset: "fairlead-demo", env: { A: "1" } } },
  });
  await waitFor("the later state", WAIT_MS, async () => (held.current()?.generation ?? 0) > (then?.generation ?? 0));

  const refused = await commands.run("restore", backup.file, "--yes", "--config", join(stage.dir, "config.yaml"));
  expect(refused).toMatchObject({ code: 1, notes: expect.stringContaining("Stop it first") as string });
  await stage.server.stop();
  const restored = restoreSchema.parse(await fairlead("restore", backup.file, "--yes"));
  await stage.startServer();

  expect(restored.epoch).not.toBe(backup.epoch);
  expect(existsSync(join(restored.replaced ?? "", "fairlead.db"))).toBe(true);
  expect(restored.sessions).toBe(1);
  const recheck = Object.fromEntries(restored.recheck.map(({ what, items }) => [what, items.join(" ")]));
  expect(recheck["Project keys deleted since the backup, which work again"]).toContain(deleted.id);
  expect(recheck["Project keys created since the backup, which no longer work"]).toContain(later.id);
  expect(Object.entries(recheck).find(([what]) => what.startsWith("Balances"))?.[1]).toContain(
    "now $5.000000, before the restore $6.0",
  );

  await waitFor("the new epoch", WAIT_MS, async () => held.current()?.epoch === restored.epoch);
  expect(held.current()).toMatchObject({ generation: then?.generation, workloads: then?.workloads });
  expect([await works(kept), await works(deleted), await works(later)]).toEqual([true, true, false]);
  await expect(stage.call("GET", "/v1/projects")).rejects.toThrow(/answered 401/);

  const { token } = z
    .object({ token: z.string() })
    .parse(await fairlead("admin", "token", "--email", "admin@fleet.local"));
  const headers = { authorization: `Bearer ${token}` };
  const balance = await fetch(`${stage.platformUrl}/v1/projects/${projectId}/balance`, { headers });
  expect(await balance.json()).toMatchObject({ balanceNanoDollars: 5 * DOLLARS });
  expect(await fairlead("admin", "check-ledger")).toMatchObject({ wrong: [] });
});
