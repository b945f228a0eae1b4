import { sweepSchema } from "@fairlead/protocol/machines";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { z } from "zod";
import { Rental } from "../support/rental.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 30_000;
const PLANTED = ["orphan-of-a-node-that-is-gone", "second-one-of-a-node", "of-nobody"];

/** Machines that bill unseen, and how they are seen. The fake's pages are of two: whoever reads the first alone misses some. */
describe("the sweep", () => {
  let rental: Rental;
  let nodeId = "";
  let labels: Readonly<Record<string, string>> = {};

  beforeAll(async () => {
    rental = await Rental.start({ maxPerPage: 2 });
    ({ id: nodeId } = await rental.rent());
    await rental.untilStatus(nodeId, "bootstrapping");
    labels = rental.project.servers[0]?.parts.labels ?? {};
  });

  afterAll(() => rental?.remove());

  const names = (): string[] => rental.project.servers.map(({ parts }) => parts.name);

  async function plant(name: string, changes: Readonly<Record<string, string>>): Promise<void> {
    if (names().includes(name)) return;
    const response = await fetch(`${rental.fake.url}/servers`, {
      method: "POST",
      headers: { authorization: `Bearer ${rental.token}` },
      body: JSON.stringify({ name, server_type: "cx22", image: "debian-12", labels: { ...labels, ...changes } }),
    });
    expect(response.status, await response.text()).toBe(201);
  }

  beforeEach(async () => {
    const [installation = "", request = ""] = Object.keys(labels);
    await plant(PLANTED[0] ?? "", { [request]: "nod_01aaaaaaaaaaaaaaaaaaaaaaaa" });
    await plant(PLANTED[1] ?? "", {});
    await plant(PLANTED[2] ?? "", { [request]: "" });
    await plant("of-another-installation", { [installation]: "ins_other" });
  });

  async function sweep(call: object = {}): Promise<z.infer<typeof sweepSchema>> {
    const body = { projectId: rental.installation.projectId, ...call };
    const response = await rental.installation.call("POST", "/v1/nodes:sweep", body);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return sweepSchema.parse(await response.json());
  }

  const idsOf = (wanted: readonly string[]): string[] =>
    rental.project.servers.flatMap(({ parts }) => (wanted.includes(parts.name) ? [String(parts.id)] : [])).toSorted();

  test("finds each machine without a node, and removes none unless requested", async () => {
    const { orphans, missing, unseen } = await sweep();
    expect(orphans.map(({ machineId }) => machineId).toSorted()).toEqual(idsOf(PLANTED));
    expect(orphans.every(({ deleted }) => !deleted)).toBe(true);
    expect({ missing, unseen }).toEqual({ missing: [], unseen: [] });
    expect(names()).toHaveLength(5);
  });

  test("removes them on request, but not the node's machine or another installation's", async () => {
    const { orphans } = await sweep({ delete: true });
    expect(orphans.filter(({ deleted }) => deleted)).toHaveLength(PLANTED.length);
    await waitFor("the end of the orphans", SOON_MS, async () => {
      await sweep();
      return PLANTED.every((name) => !names().includes(name));
    });
    expect(names()).toHaveLength(2);
    expect(names()).toContain("of-another-installation");
    expect((await sweep()).orphans).toEqual([]);
    expect((await rental.node(nodeId))?.status).toBe("bootstrapping");
  });

  test("also searches with the caller's token, and reports where it cannot look", async () => {
    const elsewhere = rental.fake.addProject("elsewhere");
    const token = rental.fake.addToken(elsewhere);
    const headers = { authorization: `Bearer ${token}` };
    const lost = { name: "lost", server_type: "cx22", image: "debian-12", labels };
    await fetch(`${rental.fake.url}/servers`, { method: "POST", headers, body: JSON.stringify(lost) });
    const [server] = elsewhere.servers;
    const found = await sweep({ provider: "hetzner", providerToken: token });
    expect(found.orphans.map(({ machineId }) => machineId)).toContain(String(server?.parts.id));
    rental.fake.revoke(token);
    const { unseen } = await sweep({ provider: "hetzner", providerToken: token });
    expect(unseen).toMatchObject([{ provider: "hetzner", message: expect.stringContaining("unable to authenticate") }]);
    expect(JSON.stringify(unseen)).not.toContain(token);
  });

  test("also runs at every start and logs what it finds", async () => {
    await rental.installation.server.kill();
    await rental.installation.startServer();
    await waitFor("the log", SOON_MS, async () =>
      rental.installation.server.log.includes("found a machine without a node"),
    );
    const [orphan = ""] = idsOf(PLANTED);
    expect(rental.installation.server.log).toContain(`"machineId":"${orphan}"`);
    expect(names()).toHaveLength(5);
  });
});
