import { afterEach, describe, expect, it } from "vitest";
import { STORES } from "../../../testing.fixture.ts";
import { type AgentFixture, agentFixture } from "../definition/agent.fixture.ts";

let fixture: AgentFixture;
afterEach(() => fixture.close());

const MOST = 20;

describe.each(STORES)("agent histories on $name", ({ open }) => {
  it("a node fills the histories of its agents up to the limit, with events and changes of state", async () => {
    fixture = await agentFixture(open, { maxEventRows: MOST });
    const nodeId = await fixture.node("Box");
    const [one, two] = [await fixture.running(nodeId), await fixture.running(nodeId, { name: "Two" })];
    const event = (n: number) => ({ id: `e${n}`, at: "t", kind: "told", workloadId: one.id, message: `${n}` });
    await fixture.nodes.reports.events(nodeId, [0, 1, 2].map(event));
    const before = await fixture.kinds(one.id);
    for (let n = 0; n < 2 * MOST; n++) {
      await fixture.report(nodeId, { [one.id]: { ready: n % 2 === 0 }, [two.id]: {} });
    }
    await fixture.nodes.reports.events(
      nodeId,
      Array.from({ length: 100 }, (_, n) => event(n + 3)),
    );
    const after = await fixture.kinds(one.id);
    expect(after.slice(0, before.length)).toEqual(before);
    // What people did since the rows were counted comes on top.
    const byPeople = new Set(["created", "start_requested"]);
    const byNode = [...after, ...(await fixture.kinds(two.id))].filter((kind) => !byPeople.has(kind));
    expect(byNode.length).toBeLessThanOrEqual(MOST);
    expect(fixture.dropped()).toBeGreaterThan(100);
    // Its state follows whether or not there is room to tell of it.
    await fixture.report(nodeId, { [one.id]: { ready: true }, [two.id]: {} });
    expect((await fixture.find(one.id))?.lifecycleState).toBe("running");
  });
});
