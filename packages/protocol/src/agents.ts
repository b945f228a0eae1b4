import { z } from "zod";
import { checkEnvSecrets, engineConfigSchema, healthSchema, probeSchema } from "./engine-config.ts";
import { secretNameSchema, WORKER_TOKEN_FILE } from "./secrets.ts";
import { imageReferenceSchema } from "./values/image-reference.ts";
import { nameSchema } from "./values/text.ts";
import { lastExitSchema } from "./workload.ts";

/** Agents (docs/interface.md §2): programs on a project's nodes with access to the project. */

export const AGENT_LIFECYCLE_STATES = [
  "created",
  "starting",
  "running",
  "stopping",
  "stopped",
  "failed",
  "deleting",
] as const;
export const agentLifecycleStateSchema = z.enum(AGENT_LIFECYCLE_STATES).meta({ id: "AgentLifecycleState" });
export type AgentLifecycleState = z.infer<typeof agentLifecycleStateSchema>;

/** The observed state. */
export const agentRuntimeSchema = z.object({
  nodeId: z.string().describe('Where the agent runs, or may still run. "" if nowhere.'),
  image: z.string().describe('The running image. "" while nothing runs.'),
  imageDigest: z.string(),
  startedAt: z.string().nullable(),
  restartCount: z.int(),
  lastExit: lastExitSchema.nullable(),
  message: z.string().describe("The reason for the current state, in words."),
});
export type AgentRuntime = z.infer<typeof agentRuntimeSchema>;

export const agentSchema = z
  .object({
    id: z.string(),
    projectId: z.string(),
    name: z.string(),
    lifecycleState: agentLifecycleStateSchema,
    guest: z.string().describe("A preset name or a container image."),
    runtimeProvider: z.string().describe("Its node: `node:<node id>`."),
    connectorSlugs: z.array(z.string()),
    runtime: agentRuntimeSchema,
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({
    id: "Agent",
    examples: [
      {
        id: "agt_01kc3b6q2v8r5x0m7n4t9w1yzj",
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        name: "Night shift",
        lifecycleState: "running",
        guest: "fairlead-demo-agent",
        runtimeProvider: "node:nod_01kc3b6q2v8r5x0m7n4t9w1yzd",
        connectorSlugs: ["http"],
        runtime: {
          nodeId: "nod_01kc3b6q2v8r5x0m7n4t9w1yzd",
          image: "fairlead/demo-agent:1",
          imageDigest: "sha256:5b0bcabd1ed22e9fb1310cf6c2dec7cdef19f0ad69efa1f392e94a4333501270",
          startedAt: "2026-03-02T09:31:02.418Z",
          restartCount: 0,
          lastExit: null,
          message: "Ready.",
        },
        createdAt: "2026-03-02T09:30:00.000Z",
        updatedAt: "2026-03-02T09:30:00.000Z",
      },
    ],
  });
export type Agent = z.infer<typeof agentSchema>;

const { image, port, env, command, args, volumes, resources, network, init, secrets, registryAuthSecret, update } =
  engineConfigSchema.shape;

/** Settings beyond the resource's fields. The guest's preset supplies defaults. */
export const agentConfigSchema = z
  .strictObject({
    image: image.describe("Overrides the image of the guest's preset, for example with a fixed version or a mirror."),
    port,
    env,
    command,
    args,
    health: healthSchema
      .extend({ probe: probeSchema.exclude(["completion"]) })
      .partial()
      .optional(),
    volumes,
    resources,
    network,
    init,
    secrets,
    registryAuthSecret,
    update,
  })
  .superRefine(checkEnvSecrets)
  .refine((config) => config.secrets?.[WORKER_TOKEN_FILE] === undefined, {
    message: "is the path of the agent's own token",
    path: ["secrets", WORKER_TOKEN_FILE],
  })
  .meta({
    id: "AgentConfig",
    description:
      "Settings beyond the agent's fields. The guest's preset supplies defaults; values set here override it.",
    examples: [{ env: { TASK: "Greet" }, secrets: { GITHUB_TOKEN: { as: "file" } }, resources: { memoryMb: 512 } }],
  });
export type AgentConfig = z.infer<typeof agentConfigSchema>;

const guestSchema = imageReferenceSchema.describe(
  "A preset name (`openclaw`, `fairlead-demo-agent`) or a container image.",
);

export const connectorSlugSchema = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/, "must be a connector's slug: 1 to 40 of a-z 0-9 -");

const connectorSlugsSchema = z
  .array(connectorSlugSchema)
  .max(32, "must have at most 32 entries")
  .describe("Slugs from the catalog, `GET /v1/connectors`.");

const RUNTIME_PROVIDER = /^node:(nod_[0-9a-z]{26})$/;

const runtimeProviderSchema = z
  .string()
  .regex(RUNTIME_PROVIDER, "must be `node:<node id>`")
  .describe("Its node: `node:<node id>`.");

export const runtimeProviderOf = (nodeId: string): string => `node:${nodeId}`;

/** @param runtimeProvider as accepted by its schema. @returns the node's id */
export function nodeOfRuntimeProvider(runtimeProvider: string): string {
  const nodeId = RUNTIME_PROVIDER.exec(runtimeProvider)?.[1];
  if (nodeId === undefined) throw new TypeError("a runtimeProvider without a node passed its schema");
  return nodeId;
}

export const createAgentSchema = z.strictObject({
  projectId: z.string(),
  name: nameSchema,
  guest: guestSchema,
  runtimeProvider: runtimeProviderSchema,
  connectorSlugs: connectorSlugsSchema.default([]),
  config: agentConfigSchema.default({}),
});

/** Omitted fields are unchanged; lists and the config are replaced as a whole. */
export const updateAgentSchema = z.strictObject({
  name: nameSchema.optional(),
  guest: guestSchema.optional(),
  runtimeProvider: runtimeProviderSchema.optional(),
  connectorSlugs: connectorSlugsSchema.optional(),
  config: agentConfigSchema.optional(),
  force: z
    .boolean()
    .default(false)
    .describe(
      "Move the agent even if its node does not respond. If that node still works, both copies run until it reconnects.",
    ),
});

/** An event of an agent. `lifecycleState` is set if the agent entered a state. */
export const agentEventSchema = z
  .object({
    id: z.string(),
    at: z.string(),
    kind: z.string(),
    lifecycleState: agentLifecycleStateSchema.nullable(),
    message: z.string(),
  })
  .meta({
    id: "AgentEvent",
    examples: [
      {
        id: "evt_01kc3b6q2v8r5x0m7n4t9w1yzk",
        at: "2026-03-02T09:31:12.000Z",
        kind: "reported_ready",
        lifecycleState: "running",
        message: "Ready.",
      },
    ],
  });
export type AgentEvent = z.infer<typeof agentEventSchema>;

/** A secret that a connector needs, and how the agent gets it. */
export const connectorSchema = z
  .object({
    slug: z.string(),
    description: z.string(),
    secrets: z.array(
      z.object({
        name: secretNameSchema,
        as: z.enum(["file", "env"]),
        variable: z
          .string()
          .optional()
          .describe("The environment variable that holds the value, or the path of the file. Default: the name."),
      }),
    ),
  })
  .meta({
    id: "Connector",
    examples: [
      {
        slug: "slack",
        description: "A Slack app in socket mode.",
        secrets: [
          { name: "SLACK_BOT_TOKEN", as: "env" },
          { name: "SLACK_APP_TOKEN", as: "env" },
        ],
      },
    ],
  });
export type Connector = z.infer<typeof connectorSchema>;

/** An agent's secret in the API. Values are never returned. */
export const agentSecretSchema = z
  .object({
    name: secretNameSchema,
    version: z.int().describe("Increases with every change. A deleted secret that is set again continues the count."),
    updatedAt: z.string(),
    stale: z
      .boolean()
      .describe("The agent moved, or its node enrolled again, and the node cannot decrypt the secret. Set it again."),
  })
  .meta({ id: "AgentSecret" });
export type AgentSecret = z.infer<typeof agentSecretSchema>;
