import type { Hello } from "@fairlead/protocol/daemon-link";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type NodeFixture, nodeFixture } from "../node.fixture.ts";

const KIND = "identity_in_use_twice";
const MINUTE = 60_000;

describe.each(STORES)("a node's identity on $name", ({ open }) => {
  let fixture: NodeFixture;
  let nodeId: string;
  beforeEach(async () => {
    fixture = await nodeFixture(open);
    nodeId = (await fixture.createEnrolled("Box")).node.id;
  });
  afterEach(() => fixture.close());

  async function hellos(...boots: readonly string[]): Promise<void> {
    for (const bootId of boots) {
      const host = { hostName: `host-${bootId}` } as Hello["host"];
      await fixture.reports.hello(nodeId, { protocolVersions: [1], daemonVersion: "0.1.0", bootId, host });
    }
  }

  async function told(kind: string): Promise<string[]> {
    const events = await fixture.stores.events.list(nodeId, { limit: 50, after: null });
    return events.filter((event) => event.kind === kind).map((event) => event.message);
  }

  it.each([
    ["a daemon that reconnects", ["a", "a", "a"]],
    ["a daemon that restarts repeatedly", ["a", "b", "c", "d", "e", "f"]],
    ["a daemon that restarts and then reconnects", ["a", "b", "b"]],
  ])("is not reported as shared for %s", async (_what, boots) => {
    await hellos(...boots);
    expect(await told(KIND)).toEqual([]);
  });

  it("is reported as shared when an earlier boot ID returns, in an event and in the status message with both hosts", async () => {
    await hellos("a", "b", "a");
    const [message = ""] = await told(KIND);
    expect(message).toMatch(/^Two daemons use this node's identity at the same time, on host-b and on host-a/);
    expect(await fixture.stores.nodes.find(nodeId)).toMatchObject({ status: "starting", statusMessage: message });
  });

  it("is reported once an hour, however often the two daemons replace each other", async () => {
    await hellos("a", "b", "a", "b", "a", "b");
    expect(await told(KIND)).toHaveLength(1);
    fixture.clock.advance(60 * MINUTE);
    await hellos("a", "b");
    expect(await told(KIND)).toHaveLength(2);
  });

  it("restores the status message after another status replaced it", async () => {
    await hellos("a", "b", "a");
    await fixture.status.apply(nodeId, "reported_ready", "All workloads are ready.");
    await hellos("b");
    expect((await fixture.stores.nodes.find(nodeId))?.statusMessage).toMatch(/^Two daemons/);
  });

  it("is reported as no longer shared after ten minutes without a takeover, and not before", async () => {
    await hellos("a", "b", "a");
    fixture.clock.advance(9 * MINUTE);
    await fixture.reports.heartbeat(nodeId);
    expect(await told("identity_in_use_once")).toEqual([]);
    fixture.clock.advance(MINUTE);
    await fixture.reports.heartbeat(nodeId);
    await fixture.reports.heartbeat(nodeId);
    const [message] = await told("identity_in_use_once");
    expect(await fixture.stores.nodes.find(nodeId)).toMatchObject({ statusMessage: message });
    expect(await told("identity_in_use_once")).toHaveLength(1);
  });

  it("is ignored if the node was deleted in the meantime", async () => {
    await hellos("a", "b");
    await fixture.stores.nodes.delete((await fixture.stores.nodes.find(nodeId))?.projectId ?? "", nodeId);
    await hellos("a");
  });
});
