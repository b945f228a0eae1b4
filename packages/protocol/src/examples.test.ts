import { describe, expect, test } from "vitest";
import { z } from "zod";
import { agentConfigSchema, agentEventSchema, agentSchema, connectorSchema } from "./agents.ts";
import { engineConfigSchema } from "./engine-config.ts";
import { nodeEventSchema, nodeSchema, projectKeySchema, projectSchema } from "./resources.ts";

const SCHEMAS = [
  projectSchema,
  projectKeySchema,
  nodeSchema,
  nodeEventSchema,
  engineConfigSchema,
  agentSchema,
  agentConfigSchema,
  agentEventSchema,
  connectorSchema,
];

describe("the examples in the API document", () => {
  test.each(SCHEMAS.map((schema) => [schema.meta()?.id ?? "?", schema] as const))("of %s are valid", (_id, schema) => {
    const examples = z.array(z.unknown()).min(1).parse(schema.meta()?.examples);
    for (const example of examples) expect(schema.parse(example)).toEqual(example);
  });
});
