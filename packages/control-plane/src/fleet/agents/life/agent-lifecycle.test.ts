import { AGENT_LIFECYCLE_STATES, type AgentLifecycleState } from "@fairlead/protocol/agents";
import { describe, expect, it } from "vitest";
import { AGENT_LIFECYCLE_EVENTS, nextAgentState } from "./agent-lifecycle.ts";

/** The full table: a row a state, a column an event; "·" where the event changes nothing. */
const TABLE = `
          start_requested stop_requested move_requested reported_not_ready reported_ready reported_failed reported_gone node_went_quiet node_drained node_deleted delete_requested
created   starting        ·              ·              ·                  ·              ·               ·             ·               ·            ·            deleting
starting  ·               stopping       ·              ·                  running        failed          ·             ·               stopping     failed       deleting
running   ·               stopping       starting       starting           ·              failed          ·             starting        stopping     failed       deleting
stopping  starting        ·              starting       starting           running        failed          stopped       ·               ·            failed       deleting
stopped   starting        ·              starting       starting           running        failed          ·             ·               ·            failed       deleting
failed    starting        stopping       starting       starting           running        ·               ·             ·               stopping     ·            deleting
deleting  ·               ·              ·              ·                  ·              ·               ·             ·               ·            ·            ·
`;

const [header = [], ...rows] = TABLE.trim()
  .split("\n")
  .map((line) => line.trim().split(/\s+/));

describe("the lifecycle of an agent", () => {
  it("has a row for every state and a column for every event", () => {
    expect(header).toEqual([...AGENT_LIFECYCLE_EVENTS]);
    expect(rows.map((row) => row[0])).toEqual([...AGENT_LIFECYCLE_STATES]);
  });

  it.each(rows)("follows the table from %s", (state, ...cells) => {
    const next = AGENT_LIFECYCLE_EVENTS.map((event) => nextAgentState(state as AgentLifecycleState, event) ?? "·");
    expect(next).toEqual(cells);
  });
});
