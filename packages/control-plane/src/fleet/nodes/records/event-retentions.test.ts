import { afterEach, describe, expect, it } from "vitest";
import { removeExpired } from "../../../installation/process/retention.ts";
import { STORES } from "../../../testing.fixture.ts";
import { eventRetentions } from "../../fleet-room.ts";
import { type NodeFixture, nodeFixture } from "../node.fixture.ts";

let fixture: NodeFixture;
afterEach(() => fixture.close());

const DAY_MS = 24 * 3_600_000;

describe.each(STORES)("retention of node events on $name", ({ open }) => {
  it("removes events that are older than 90 days, in chunks, and keeps the rest", async () => {
    fixture = await nodeFixture(open);
    const { id: nodeId } = await fixture.create("Box");
    const now = fixture.clock.now() + 100 * DAY_MS;
    const old = Array.from({ length: 1203 }, (_, n) => ({ at: fixture.clock.now(), n }));
    const recent = Array.from({ length: 7 }, (_, n) => ({ at: now - 89 * DAY_MS, n: n + old.length }));
    const rows = [...old, ...recent].map(({ at, n }) => ({
      id: `evt_${String(n).padStart(6, "0")}`,
      nodeId,
      at,
      kind: "test",
      status: null,
      message: "",
    }));
    for (let start = 0; start < rows.length; start += 400) {
      await fixture.stores.events.append(rows.slice(start, start + 400));
    }
    fixture.clock.advance(100 * DAY_MS);
    // The node's own first event is as old as they are.
    const [nodeEvents] = eventRetentions(fixture.store.longReads, 90, fixture.clock);
    expect(await removeExpired(nodeEvents)).toBe(old.length + 1);
    expect(await fixture.stores.events.list(nodeId, { limit: 50, after: null })).toHaveLength(recent.length);
  });
});
