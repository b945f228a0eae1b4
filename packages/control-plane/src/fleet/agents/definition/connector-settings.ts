import { connectorSchema, connectorSlugSchema } from "@fairlead/protocol/agents";
import { environmentNameSchema } from "@fairlead/protocol/engine-config";
import { secretNameSchema, WORKER_TOKEN_FILE } from "@fairlead/protocol/secrets";
import { fromJson } from "@fairlead/protocol/values/json-setting";
import { z } from "zod";
import { BUILT_IN_CONNECTORS } from "./connectors.ts";

/** `connectors` in the config. */

const secret = z
  .strictObject({
    name: secretNameSchema.refine((name) => name !== WORKER_TOKEN_FILE, "is the path of the agent's own token"),
    as: z.enum(["file", "env"]),
    variable: environmentNameSchema.optional(),
  })
  .superRefine(({ name, as, variable = as === "env" ? name : undefined }, context) => {
    if (variable === undefined) return;
    const issue = (message: string): void => context.addIssue({ code: "custom", path: ["variable"], message });
    if (!environmentNameSchema.safeParse(variable).success)
      issue("is required because the name is not a valid variable name");
    else if (isToldToAgents(variable)) issue(`${variable} is set by the platform for every agent; use another name`);
  });

const connector = z.strictObject({
  slug: connectorSlugSchema.refine(
    (slug) => BUILT_IN_CONNECTORS.every((builtIn) => builtIn.slug !== slug),
    "is the slug of a built-in connector; use another one",
  ),
  description: connectorSchema.shape.description.min(1).max(500),
  secrets: z
    .array(secret)
    .max(16)
    .refine((secrets) => isDistinct(secrets.map(({ name }) => name)), "contains the same name twice")
    .refine(
      (secrets) => isDistinct(secrets.flatMap(({ name, as, variable }) => variable ?? (as === "env" ? name : []))),
      "contains the same variable twice",
    ),
});

export const connectorSettings = fromJson(
  z.array(connector).refine((items) => isDistinct(items.map(({ slug }) => slug)), "contains the same slug twice"),
)
  .default([])
  .describe(
    "Connectors of this installation, in addition to `http` and `slack`: a list of `slug`, `description` and `secrets`, each with `name`, `as` " +
      "(`file` or `env`) and `variable` (see docs/connectors.md). As an environment variable: JSON.",
  );

function isDistinct(values: readonly string[]): boolean {
  return new Set(values).size === values.length;
}

/** docs/agents.md lists them. */
function isToldToAgents(variable: string): boolean {
  return variable === "PORT" || variable === "OPENAI_BASE_URL" || variable.startsWith("FAIRLEAD_");
}
