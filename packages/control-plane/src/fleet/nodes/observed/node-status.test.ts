import { NODE_STATUSES, type NodeStatus } from "@fairlead/protocol/resources";
import { describe, expect, it } from "vitest";
import { NODE_STATUS_EVENTS, nextNodeStatus } from "./node-status.ts";

/** The full table: a row a status, a column an event; "·" where the event changes nothing. */
const TABLE = `
               bootstrap_token_issued enrolled reported_ready reported_not_ready went_quiet  daemon_stopped drain_requested drained resume_requested provisioning_failed delete_requested
provisioning   bootstrapping          starting ·              ·                  ·           ·              ·               ·       ·                failed              deleting
bootstrapping  ·                      starting ·              ·                  ·           ·              ·               ·       ·                failed              deleting
starting       ·                      ·        active         ·                  unreachable unreachable    draining        ·       ·                ·                   deleting
active         ·                      starting ·              degraded           unreachable unreachable    draining        ·       ·                ·                   deleting
degraded       ·                      starting active         ·                  unreachable unreachable    draining        ·       ·                ·                   deleting
unreachable    ·                      starting active         degraded           ·           ·              draining        ·       ·                ·                   deleting
draining       ·                      starting ·              ·                  ·           ·              ·               drained starting         ·                   deleting
drained        ·                      starting ·              ·                  ·           ·              ·               ·       starting         ·                   deleting
failed         bootstrapping          starting ·              ·                  ·           ·              ·               ·       ·                ·                   deleting
deleting       ·                      ·        ·              ·                  ·           ·              ·               ·       ·                ·                   ·
`;

const [header = [], ...rows] = TABLE.trim()
  .split("\n")
  .map((line) => line.trim().split(/\s+/));

describe("the node status machine", () => {
  it("has a row for every status and a column for every event", () => {
    expect(header).toEqual([...NODE_STATUS_EVENTS]);
    expect(rows.map((row) => row[0])).toEqual([...NODE_STATUSES]);
  });

  it.each(rows)("follows the table from %s", (status, ...cells) => {
    const next = NODE_STATUS_EVENTS.map((event) => nextNodeStatus(status as NodeStatus, event) ?? "·");
    expect(next).toEqual(cells);
  });

  it("never leaves deleting, so that a late report cannot bring a deleted node back", () => {
    for (const event of NODE_STATUS_EVENTS) expect(nextNodeStatus("deleting", event)).toBeNull();
  });
});
