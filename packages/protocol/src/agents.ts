import { z } from "zod";
import { checkEnvSecrets, engineConfigSchema, healthSchema, probeSchema } from "./engine-config.ts";
import { secretNameSchema, WORKER_TOKEN_FILE } from "./secrets.ts";
import { nameSchema } from "./text.ts";
import { lastExitSchema } from "./workload.ts";

/** Agents (interface §2, design §10): programs that run on a project's nodes with its access. */

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

/** What is observed of it (design §10). */
export const agentRuntimeSchema = z.object({
  nodeId: z.string().describe('Where it runs, or may still run; "" where it does not.'),
  image: z.string().describe('What runs; "" while nothing does.'),
  imageDigest: z.string(),
  startedAt: z.string().nullable(),
  restartCount: z.int(),
  lastExit: lastExitSchema.nullable(),
  message: z.string().describe("Why it is in its state; for people."),
});
export type AgentRuntime = z.infer<typeof agentRuntimeSchema>;

export const agentSchema = z
  .object({
    id: z.string(),
    projectId: z.string(),
    name: z.string(),
    lifecycleState: agentLifecycleStateSchema,
    guest: z.string().describe("A preset's name, or a container image."),
    runtimeProvider: z.string().describe("Where it runs: `node:<node id>`."),
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
          message: "It is ready.",
        },
        createdAt: "2026-03-02T09:30:00.000Z",
        updatedAt: "2026-03-02T09:30:00.000Z",
      },
    ],
  });
export type Agent = z.infer<typeof agentSchema>;

const { image, port, env, command, args, volumes, resources, secrets, registryAuthSecret, update } =
  engineConfigSchema.shape;

/** What an agent needs beyond the fields of the resource. Its guest's preset fills in what is left out; what is set wins. */
export const agentConfigSchema = z
  .strictObject({
    image: image.describe(
      "Runs in place of the image that the guest's preset names: a certain version of it, or a mirror's.",
    ),
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
    secrets,
    registryAuthSecret,
    update,
  })
  .superRefine(checkEnvSecrets)
  .refine((config) => config.secrets?.[WORKER_TOKEN_FILE] === undefined, {
    message: "is the file of the agent's own token",
    path: ["secrets", WORKER_TOKEN_FILE],
  })
  .meta({
    id: "AgentConfig",
    description:
      "What an agent needs beyond its fields. Its guest's preset fills in what is left out; what is set wins.",
    examples: [{ env: { TASK: "Greet" }, secrets: { GITHUB_TOKEN: { as: "file" } }, resources: { memoryMb: 512 } }],
  });
export type AgentConfig = z.infer<typeof agentConfigSchema>;

const guestSchema = z
  .string()
  .min(1, "must not be empty")
  .max(512, "must have at most 512 characters")
  .regex(/^[^\s\p{Cc}\p{Cs}]+$/u, "must not hold white space")
  .describe("A preset's name (`openclaw`, `fairlead-demo-agent`), or a container image.");

export const connectorSlugSchema = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/, "must be a connector's slug: 1 to 40 of a-z 0-9 -");

const connectorSlugsSchema = z
  .array(connectorSlugSchema)
  .max(32, "must have at most 32 entries")
  .describe("Entries of the catalogue, `GET /v1/connectors`.");

const RUNTIME_PROVIDER = /^node:(nod_[0-9a-z]{26})$/;

const runtimeProviderSchema = z
  .string()
  .regex(RUNTIME_PROVIDER, "must be `node:<node id>`")
  .describe("Where it runs: `node:<node id>`.");

export const runtimeProviderOf = (nodeId: string): string => `node:${nodeId}`;

/** @param runtimeProvider as it passed its schema. @returns the node's id */
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

/** What is absent stays as it is; lists and the config are replaced whole. */
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
      "Move it away from a node that does not answer: where that node still works, both copies run until it is back.",
    ),
});

/** One line of an agent's history. `lifecycleState` is set where the agent entered one. */
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
        message: "It is ready.",
      },
    ],
  });
export type AgentEvent = z.infer<typeof agentEventSchema>;

/** What a connector asks for, and how an agent that uses it gets that. */
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
          .describe("The environment variable that holds the value, or the file's path. Left out: the name."),
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

/** An agent's secret as people see it. No answer ever shows a value. */
export const agentSecretSchema = z
  .object({
    name: secretNameSchema,
    version: z.int().describe("Grows with every change; a deleted secret that is set again goes on counting."),
    updatedAt: z.string(),
    stale: z
      .boolean()
      .describe("Sealed to a key that its node does not have, since it moved or the node enrolled anew: set it again."),
  })
  .meta({ id: "AgentSecret" });
export type AgentSecret = z.infer<typeof agentSecretSchema>;
