import { afterEach, expect, it } from "vitest";
import { MAX_AGENTS_PER_NODE } from "../../../telemetry/bounds/node-rate-bounds.ts";
import { type AgentFixture, agentFixture } from "./agent.fixture.ts";

let fixture: AgentFixture;
afterEach(() => fixture.close());

it("a node takes a limited number of agents, including those that have not started", async () => {
  fixture = await agentFixture();
  const [box, other] = [await fixture.node("Box"), await fixture.node("Other")];
  for (let n = 0; n < MAX_AGENTS_PER_NODE; n++) await fixture.create(box);
  await expect(fixture.create(box)).rejects.toMatchObject({ code: "invalid_request", param: "runtimeProvider" });
  await expect(fixture.create(other)).resolves.toBeDefined();
  expect(fixture.nodes.bounds.counts.get("agents_per_node")).toBe(1);
});
