import { expect, test } from "vitest";
import { nodeFixture, OTHER_PROJECT, PROJECT } from "../node.fixture.ts";

test("a project's engines are visible immediately after a change, and to no other project", async () => {
  const nodes = await nodeFixture();
  expect(await nodes.engines.list(PROJECT)).toEqual([]);
  const { node } = await nodes.createEnrolled("box");
  expect(await nodes.engines.list(PROJECT)).toMatchObject([
    { nodeId: node.id, absence: expect.stringMatching(/has no daemon yet|not been reported/), models: [] },
  ]);
  expect(await nodes.engines.list(OTHER_PROJECT)).toEqual([]);
  await nodes.close();
});

test("known engines remain available for five minutes while the store is unavailable, like known keys", async () => {
  const nodes = await nodeFixture();
  await nodes.createEnrolled("box");
  await nodes.engines.list(PROJECT);
  await nodes.close();
  nodes.clock.advance(5 * 60_000 - 1);
  expect(await nodes.engines.list(PROJECT)).toHaveLength(1);
  nodes.clock.advance(1000);
  await expect(nodes.engines.list(PROJECT)).rejects.toThrow();
});
