import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { agentLifecycleReference } from "./agent-lifecycle-reference.ts";

test("docs/agent-status.md matches the code (regenerate it with `node --conditions=fairlead-source scripts/generate-docs.ts`)", () => {
  const page = new URL("../../../../../../docs/agent-status.md", import.meta.url);
  expect(readFileSync(page, "utf8")).toBe(agentLifecycleReference());
});
