import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { afterEach, describe, expect, it, vi } from "vitest";
import { removeExpired } from "../../../installation/process/retention.ts";
import { STORES } from "../../../testing.fixture.ts";
import { eventRetentions } from "../../fleet-room.ts";
import { INSTALLATION, type NodeFixture, nodeFixture, reportFor } from "../node.fixture.ts";
import { NodeHistory } from "./node-history.ts";

let fixture: NodeFixture;
afterEach(() => fixture.close());

const MOST = 30;
const DAY_MS = 24 * 3_600_000;
let serial = 0;
const told = (count: number, kind = "told") =>
  Array.from({ length: count }, () => ({ id: `e${serial++}`, at: "t", kind, workloadId: null, message: `${serial}` }));

async function rows(nodeId: string) {
  return (await fixture.stores.events.list(nodeId, { limit: 500, after: null })).toReversed();
}

describe.each(STORES)("a node's history on $name", ({ open }) => {
  const start = async (): Promise<string> => {
    fixture = await nodeFixture(open, { maxEventRows: MOST });
    return (await fixture.createEnrolled("Box")).node.id;
  };

  it("keeps what was there and drops the newest beyond the limit, and says how many", async () => {
    const nodeId = await start();
    await fixture.reports.events(nodeId, told(10, "early"));
    const before = await rows(nodeId);
    for (let n = 0; n < 5; n++) await fixture.reports.events(nodeId, told(20));
    const after = await rows(nodeId);
    expect(after.slice(0, before.length)).toEqual(before);
    const dropped = 110 + before.length - 10 - MOST;
    const last = after.at(-1);
    expect(last).toMatchObject({ kind: "events_dropped" });
    expect(last?.message).toContain(`${dropped} events were dropped`);
    expect(after).toHaveLength(MOST + 1);
    expect(fixture.bounds.counts.get("node_event_rows")).toBe(dropped);
  });

  it("does not grow beyond the limit when the status alternates, and the status is still updated", async () => {
    const nodeId = await start();
    const desired = await fixture.reports.desiredState(nodeId);
    const ready = (isReady: boolean) =>
      fixture.reports.ready(nodeId, {
        id: nodeId,
        workloadReports: [reportFor(desired, { ready: isReady })],
        operatingSystem: "",
        workerImageDigest: "",
      });
    for (let n = 0; n < 2 * MOST; n++) {
      fixture.clock.advance(1000);
      await ready(n % 2 === 0);
    }
    expect(await rows(nodeId)).toHaveLength(MOST + 1);
    expect(await fixture.statusOf(nodeId)).toBe("degraded");
  });

  it("accepts events again once retention has made room", async () => {
    const nodeId = await start();
    await fixture.reports.events(nodeId, told(2 * MOST));
    fixture.clock.advance(100 * DAY_MS);
    const [nodeEvents] = eventRetentions(fixture.store.longReads, 90, fixture.clock);
    await removeExpired(nodeEvents);
    await fixture.reports.events(nodeId, told(5, "late"));
    expect((await rows(nodeId)).filter(({ kind }) => kind === "late")).toHaveLength(5);
  });

  it("is counted once, not with every event, and separately for each node", async () => {
    const nodeId = await start();
    const { node: other } = await fixture.createEnrolled("Other");
    const { events } = fixture.stores;
    const count = vi.spyOn(events, "count");
    const { clock, bounds } = fixture;
    const history = new NodeHistory({ events, clock, bounds, ids: countingIds(7), maxRows: MOST });
    for (let n = 0; n < 10; n++) {
      await history.open(nodeId);
      history.take(nodeId, 10);
    }
    expect(count).toHaveBeenCalledTimes(1);
    await history.open(other.id);
    expect(history.take(other.id, 1)).toBe(1);
  });

  it("records a flood once an hour", async () => {
    const nodeId = await start();
    for (let n = 0; n < 3; n++) await fixture.reports.flooded(nodeId, "too many messages");
    fixture.clock.advance(3_600_000);
    await fixture.reports.flooded(nodeId, "too many messages");
    const floods = (await rows(nodeId)).filter(({ kind }) => kind === "link_flooded");
    expect(floods).toHaveLength(2);
    expect(floods[0]?.message).toContain("too many messages");
  });

  it("keeps the status message below a maximum length, however much the workloads report", async () => {
    const nodeId = await start();
    const desired = await fixture.reports.desiredState(nodeId);
    const workloadReports = Array.from({ length: 256 }, (_, n) =>
      reportFor(desired, { workloadId: `w${n}`, ready: false, message: "x".repeat(1024) }),
    );
    await fixture.reports.observe(nodeId, { epoch: INSTALLATION.epoch, generation: 1, workloadReports });
    expect((await fixture.stores.nodes.find(nodeId))?.statusMessage.length).toBeLessThanOrEqual(2048);
  });
});
