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
    ["a daemon that comes back after a lost connection", ["a", "a", "a"]],
    ["a daemon that is started again and again", ["a", "b", "c", "d", "e", "f"]],
    ["a daemon that was started again and then lost its connection", ["a", "b", "b"]],
  ])("is not called in use twice by %s", async (_what, boots) => {
    await hellos(...boots);
    expect(await told(KIND)).toEqual([]);
  });

  it("is called in use twice when a boot comes back after another: in an event and in the status message, with both hosts", async () => {
    await hellos("a", "b", "a");
    const [message = ""] = await told(KIND);
    expect(message).toMatch(/^Two daemons use this node's identity at the same time, on host-b and on host-a/);
    expect(await fixture.stores.nodes.find(nodeId)).toMatchObject({ status: "starting", statusMessage: message });
  });

  it("is told of once an hour, however often the two take over from each other", async () => {
    await hellos("a", "b", "a", "b", "a", "b");
    expect(await told(KIND)).toHaveLength(1);
    fixture.clock.advance(60 * MINUTE);
    await hellos("a", "b");
    expect(await told(KIND)).toHaveLength(2);
  });

  it("puts the message back after another status has been entered meanwhile", async () => {
    await hellos("a", "b", "a");
    await fixture.status.apply(nodeId, "reported_ready", "All workloads are ready.");
    await hellos("b");
    expect((await fixture.stores.nodes.find(nodeId))?.statusMessage).toMatch(/^Two daemons/);
  });

  it("is called in use once again after ten minutes without a take-over, and not before", async () => {
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

  it("of a node that was deleted meanwhile is nobody's concern", async () => {
    await hellos("a", "b");
    await fixture.stores.nodes.delete((await fixture.stores.nodes.find(nodeId))?.projectId ?? "", nodeId);
    await hellos("a");
  });
});
