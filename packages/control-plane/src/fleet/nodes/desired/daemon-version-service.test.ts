import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { STORES } from "../../../testing.fixture.ts";
import { type NodeFixture, nodeFixture, OTHER_PROJECT, OWNER, PROJECT, STRANGER, VIEWER } from "../node.fixture.ts";
import { mostSpecific } from "./daemon-version.ts";

const ADMINISTRATOR: UserPrincipal = { kind: "user", userId: "usr_root", platformAdmin: true };

test("a node's own version takes precedence over its project's, and the project's over the fleet's", () => {
  const of = (target: Parameters<typeof mostSpecific>[0][number]["target"]) => ({
    target,
    version: "1",
    requestedAt: 1,
  });
  const fleet = of({ scope: "fleet" });
  const project = of({ scope: "project", projectId: "prj_1" });
  const node = of({ scope: "node", nodeId: "nod_1", projectId: "prj_1" });
  expect(mostSpecific([fleet, project, node])).toBe(node);
  expect(mostSpecific([project, fleet])).toBe(project);
  expect(mostSpecific([fleet])).toBe(fleet);
  expect(mostSpecific([])).toBeNull();
});

describe.each(STORES)("the desired daemon version on $name", ({ open }) => {
  let fixture: NodeFixture;
  beforeEach(async () => {
    fixture = await nodeFixture(open);
  });
  afterEach(() => fixture.close());

  const told = async (nodeId: string) => (await fixture.reports.desiredState(nodeId)).daemon;
  const shown = async (nodeId: string) => fixture.views.one(await fixture.nodes.get(OWNER, nodeId));

  test("is sent to the node's daemon with everything that it needs, and to no other daemon", async () => {
    const { node } = await fixture.createEnrolled("Box");
    const { node: other } = await fixture.createEnrolled("Other");
    const generation = (await fixture.reports.desiredState(node.id)).generation;
    const woken: string[] = [];
    fixture.changes.listen(({ nodeId, aspect }) => woken.push(`${nodeId} ${aspect}`));
    const view = await fixture.daemonVersions.set(OWNER, { scope: "node", id: node.id }, "1.3.0");
    expect(view).toMatchObject({ version: "1.3.0", effective: { version: "1.3.0", scope: "node" } });
    expect(woken).toEqual([`${node.id} desired`]);
    expect(await told(node.id)).toEqual({
      version: "1.3.0",
      request: `node:${fixture.clock.now()}`,
      files: [
        {
          arch: "x64",
          path: "/v1/daemon-builds/fairlead-daemon-1.3.0-linux-x64.tar.gz",
          sha256: "ab".repeat(32),
          bytes: 1000,
        },
      ],
      spreadSeconds: 0,
    });
    expect(await told(other.id)).toBeUndefined();
    // Engines do not change with the daemon.
    expect((await fixture.reports.desiredState(node.id)).generation).toBe(generation);
    expect(await shown(node.id)).toMatchObject({ desiredDaemonVersion: "1.3.0", daemonVersion: "0.1.0" });
    expect(await fixture.nodes.events(OWNER, node.id, { after: null, limit: 1 })).toMatchObject([
      { kind: "daemon_version_requested", message: "usr_a@example.org requested daemon version 1.3.0." },
    ]);
  });

  test("of the fleet or a project applies to every node without its own, spread over time", async () => {
    const nodes = [await fixture.create("A"), await fixture.create("B"), await fixture.create("C")];
    const [a = "", b = "", c = ""] = nodes.map(({ id }) => id);
    await fixture.daemonVersions.set(ADMINISTRATOR, { scope: "fleet" }, "1.2.3");
    expect(await told(a)).toMatchObject({ version: "1.2.3", spreadSeconds: 2 });
    await fixture.daemonVersions.set(OWNER, { scope: "project", id: PROJECT }, "1.3.0");
    expect(await told(b)).toMatchObject({ version: "1.3.0" });
    await fixture.daemonVersions.set(OWNER, { scope: "node", id: c }, "1.2.3");
    const views = await fixture.views.all(PROJECT, await fixture.nodes.list(OWNER, PROJECT, { after: null, limit: 9 }));
    expect(views.map(({ desiredDaemonVersion }) => desiredDaemonVersion)).toEqual(["1.3.0", "1.3.0", "1.2.3"]);
    await fixture.daemonVersions.set(OWNER, { scope: "project", id: PROJECT }, null);
    expect(await fixture.daemonVersions.get(OWNER, { scope: "node", id: a })).toEqual({
      version: null,
      requestedAt: null,
      effective: { version: "1.2.3", scope: "fleet" },
    });
  });

  test("is not sent to a daemon that already runs it, and setting it again makes a new request", async () => {
    const { node } = await fixture.createEnrolled("Box");
    const target = { scope: "node", id: node.id } as const;
    await fixture.daemonVersions.set(OWNER, target, "1.3.0");
    const first = await told(node.id);
    fixture.clock.advance(1000);
    await fixture.daemonVersions.set(OWNER, target, "1.3.0");
    expect((await told(node.id))?.request).not.toBe(first?.request);
    await fixture.stores.nodes.setDaemonVersion(node.id, "1.3.0");
    expect(await told(node.id)).toBeUndefined();
  });

  test.each([
    { version: "7.7.7", why: "there is no daemon build of this version; available versions: 1.2.3, 1.3.0, 9.0.0" },
    { version: "9.0.0", why: "that daemon supports version 9 of the daemon link, but this server supports 1" },
  ])("$version is rejected, because $why", async ({ version, why }) => {
    const node = await fixture.create("Box");
    const asked = fixture.daemonVersions.set(OWNER, { scope: "node", id: node.id }, version);
    await expect(asked).rejects.toMatchObject({ code: "invalid_request", message: `\`version\`: ${why}.` });
    expect(await shown(node.id)).toMatchObject({ desiredDaemonVersion: null });
  });

  test("can be set by operators of the project, and for the fleet by platform administrators", async () => {
    const node = await fixture.create("Box");
    const mine = { scope: "node", id: node.id } as const;
    const set = (caller: UserPrincipal, target: Parameters<typeof fixture.daemonVersions.set>[1]) =>
      expect(fixture.daemonVersions.set(caller, target, "1.3.0")).rejects;
    await set(VIEWER, mine).toMatchObject({ code: "permission_denied" });
    await set(STRANGER, mine).toMatchObject({ code: "not_found" });
    await set(VIEWER, { scope: "project", id: PROJECT }).toMatchObject({ code: "permission_denied" });
    await set(OWNER, { scope: "project", id: OTHER_PROJECT }).toMatchObject({ code: "not_found" });
    await set(OWNER, { scope: "fleet" }).toMatchObject({ code: "permission_denied" });
    const seen = fixture.daemonVersions.get(VIEWER, mine);
    await expect(seen).resolves.toMatchObject({ version: null, effective: null });
  });

  test("is deleted with its node", async () => {
    const node = await fixture.create("Box");
    await fixture.daemonVersions.set(OWNER, { scope: "node", id: node.id }, "1.3.0");
    await fixture.nodeChanges.delete(OWNER, node.id);
    expect(await fixture.stores.daemonVersions.ofNodes(PROJECT)).toEqual([]);
  });

  test("a daemon's update status is shown, written once, and kept when a daemon reports none", async () => {
    const { node } = await fixture.createEnrolled("Box");
    const desired = await fixture.reports.desiredState(node.id);
    const observation = { epoch: desired.epoch, generation: desired.generation, workloadReports: [] };
    const daemonUpdate = { wanted: "1.3.0", state: "downloading", message: "40 %", since: "2026-01-01T00:00:00.000Z" };
    let reports = 0;
    fixture.changes.listen(({ aspect }) => {
      if (aspect === "report") reports += 1;
    });
    await fixture.reports.observe(node.id, { ...observation, daemonUpdate });
    const after = reports;
    await fixture.reports.observe(node.id, { ...observation, daemonUpdate });
    expect(reports).toBe(after);
    await fixture.reports.observe(node.id, observation);
    expect(await shown(node.id)).toMatchObject({ daemonUpdate });
    await fixture.reports.observe(node.id, { ...observation, daemonUpdate: null });
    expect(await shown(node.id)).toMatchObject({ daemonUpdate: null });
  });

  test("is recorded in the audit log with the user and the version", async () => {
    const node = await fixture.create("Box");
    await fixture.daemonVersions.set(OWNER, { scope: "node", id: node.id }, "1.3.0");
    await fixture.daemonVersions.set(ADMINISTRATOR, { scope: "fleet" }, null);
    const rows = await fixture.store.db
      .selectFrom("audit_event")
      .select(["actor_id", "project_id", "resource_type", "detail"])
      .where("action", "=", "daemon.version")
      .orderBy("id")
      .execute();
    expect(rows).toEqual([
      { actor_id: "usr_a", project_id: PROJECT, resource_type: "node", detail: '{"version":"1.3.0"}' },
      { actor_id: "usr_root", project_id: null, resource_type: "installation", detail: '{"version":null}' },
    ]);
  });
});
