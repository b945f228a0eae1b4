import { connectorSchema, connectorSlugSchema } from "@fairlead/protocol/agents";
import { environmentNameSchema } from "@fairlead/protocol/engine-config";
import { secretNameSchema, WORKER_TOKEN_FILE } from "@fairlead/protocol/secrets";
import { z } from "zod";
import { fromJson } from "../json-setting.ts";
import { BUILT_IN_CONNECTORS } from "./connectors.ts";

/** `connectors` in the config. */

const secret = z
  .strictObject({
    name: secretNameSchema.refine((name) => name !== WORKER_TOKEN_FILE, "is the file of the agent's own token"),
    as: z.enum(["file", "env"]),
    variable: environmentNameSchema.optional(),
  })
  .superRefine(({ name, as, variable = as === "env" ? name : undefined }, context) => {
    if (variable === undefined) return;
    const issue = (message: string): void => context.addIssue({ code: "custom", path: ["variable"], message });
    if (!environmentNameSchema.safeParse(variable).success)
      issue("is needed: the name is none that a variable can have");
    else if (isToldToAgents(variable)) issue(`${variable} is what the platform tells every agent; take another`);
  });

const connector = z.strictObject({
  slug: connectorSlugSchema.refine(
    (slug) => BUILT_IN_CONNECTORS.every((builtIn) => builtIn.slug !== slug),
    "is that of a connector which comes with the platform; take another",
  ),
  description: connectorSchema.shape.description.min(1).max(500),
  secrets: z
    .array(secret)
    .max(16)
    .refine((secrets) => isDistinct(secrets.map(({ name }) => name)), "holds the same name twice")
    .refine(
      (secrets) => isDistinct(secrets.flatMap(({ name, as, variable }) => variable ?? (as === "env" ? name : []))),
      "holds the same variable twice",
    ),
});

export const connectorSettings = fromJson(
  z.array(connector).refine((items) => isDistinct(items.map(({ slug }) => slug)), "holds the same slug twice"),
)
  .default([])
  .describe(
    "Connectors of this installation, besides `http` and `slack`: a list of `slug`, `description` and `secrets`, each with `name`, `as` " +
      "(`file` or `env`) and `variable` (docs/connectors.md). In the variable: JSON.",
  );

function isDistinct(values: readonly string[]): boolean {
  return new Set(values).size === values.length;
}

/** docs/agents.md lists them. */
function isToldToAgents(variable: string): boolean {
  return variable === "PORT" || variable === "OPENAI_BASE_URL" || variable.startsWith("FAIRLEAD_");
}
