import { z } from "zod";
import { conditionSchema } from "./conditions.ts";
import { daemonUpdateSchema } from "./daemon-updates.ts";
import { engineConfigSchema } from "./engine-config.ts";
import { lastExitSchema, workloadStateSchema, workloadTypeSchema } from "./workload.ts";

/** Resources on the wire (interface, section 2). Times are RFC 3339, UTC, milliseconds. */

export const projectSchema = z
  .object({
    id: z.string(),
    userId: z.string(),
    name: z.string(),
    createdAt: z.string(),
    updatedAt: z.string(),
    defaultModel: z
      .string()
      .optional()
      .describe("The model for calls that do not name one. If absent, the server's default applies."),
    deletingSince: z.string().optional().describe("Set while the project is being deleted: when the deletion started."),
  })
  .meta({
    id: "Project",
    examples: [
      {
        id: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        userId: "usr_01kc3b6q2v8r5x0m7n4t9w1yzb",
        name: "Support",
        createdAt: "2026-03-02T09:30:00.000Z",
        updatedAt: "2026-03-02T09:30:00.000Z",
      },
    ],
  });
export type Project = z.infer<typeof projectSchema>;

export const ROLES = ["owner", "admin", "member", "viewer"] as const;
export const roleSchema = z.enum(ROLES);
export type Role = z.infer<typeof roleSchema>;

export const memberSchema = z
  .object({
    projectId: z.string(),
    userId: z.string(),
    email: z.string(),
    role: roleSchema,
    createdAt: z.string(),
  })
  .meta({
    id: "Member",
    examples: [
      {
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        userId: "usr_01kc3b6q2v8r5x0m7n4t9w1yzb",
        email: "ann@example.org",
        role: "owner",
        createdAt: "2026-03-02T09:30:00.000Z",
      },
    ],
  });
export type Member = z.infer<typeof memberSchema>;

/** An open invitation. Its link is returned only once, separately. */
export const invitationSchema = z
  .object({
    id: z.string(),
    projectId: z.string(),
    email: z.string(),
    role: roleSchema,
    createdAt: z.string(),
    expiresAt: z.string(),
  })
  .meta({
    id: "Invitation",
    examples: [
      {
        id: "otl_01kc3b6q2v8r5x0m7n4t9w1yzi",
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        email: "ben@example.org",
        role: "member",
        createdAt: "2026-03-02T09:30:00.000Z",
        expiresAt: "2026-03-09T09:30:00.000Z",
      },
    ],
  });
export type Invitation = z.infer<typeof invitationSchema>;

const rate = z.number().int().positive().nullable();
const nanoDollars = z.number().int().nonnegative().nullable();

/** Limits of a project key or agent; null: no limit. */
export const keyLimitsSchema = z
  .object({
    modelAllowList: z
      .array(z.string())
      .nullable()
      .describe("The only models that can be called: names, or `<provider>/*`."),
    requestsPerMinute: rate,
    tokensPerMinute: rate,
    parallelCalls: rate,
    budget: z
      .object({ total: nanoDollars, daily: nanoDollars, monthly: nanoDollars })
      .describe("Integer nano-dollars. Days and months are calendar periods in UTC."),
  })
  .meta({ id: "KeyLimits" });
export type KeyLimits = z.infer<typeof keyLimitsSchema>;

const spentNanoDollars = z.number().int();
const spentSchema = z
  .object({ total: spentNanoDollars, daily: spentNanoDollars, monthly: spentNanoDollars })
  .describe("Integer nano-dollars spent: in total, today, and this month (UTC).");

/** Limits and spending of an agent. */
export const agentLimitsSchema = keyLimitsSchema.extend({ spent: spentSchema }).meta({
  id: "AgentLimits",
  examples: [
    {
      modelAllowList: ["attic/*"],
      requestsPerMinute: 60,
      tokensPerMinute: null,
      parallelCalls: 4,
      budget: { total: null, daily: 5_000_000_000, monthly: null },
      spent: { total: 61_204_118_300, daily: 1_250_000_000, monthly: 18_070_500_000 },
    },
  ],
});
export type AgentLimits = z.infer<typeof agentLimitsSchema>;

const callLimits = {
  requestsPerMinute: rate.describe("Requests per minute."),
  tokensPerMinute: rate.describe("Input and output tokens per minute."),
  parallelCalls: rate.describe("Concurrent calls."),
};

/** Limits of all calls of a project together. */
export const projectLimitsSchema = z
  .object({
    ...callLimits,
    effective: z
      .object(callLimits)
      .describe("The limits in effect: the project's, otherwise the server's. Null: no limit."),
  })
  .describe("Null: the server's limit applies.")
  .meta({
    id: "ProjectLimits",
    examples: [
      {
        requestsPerMinute: 600,
        tokensPerMinute: null,
        parallelCalls: null,
        effective: { requestsPerMinute: 600, tokensPerMinute: 1_000_000, parallelCalls: null },
      },
    ],
  });
export type ProjectLimits = z.infer<typeof projectLimitsSchema>;

export const projectKeySchema = z
  .object({
    id: z.string(),
    projectId: z.string(),
    userId: z.string(),
    name: z.string(),
    /** The public part of the key, safe for logs. */
    keyId: z.string(),
    /** The whole secret; only in the response that creates it. */
    keyValue: z.string().optional(),
    createdAt: z.string(),
    enabled: z.boolean(),
    expiresAt: z.string().nullable().describe("Requests are rejected after this time. Null: never expires."),
    lastUsedAt: z.string().nullable().describe("Accurate to about a minute. Null: never used."),
    limits: keyLimitsSchema,
    spent: spentSchema,
    previousSecret: z
      .object({ keyId: z.string(), expiresAt: z.string(), lastUsedAt: z.string().nullable() })
      .nullable()
      .describe("After a rotation, until its overlap ends: the previous secret, which still works."),
  })
  .meta({
    id: "Key",
    examples: [
      {
        id: "key_01kc3b6q2v8r5x0m7n4t9w1yzc",
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        userId: "usr_01kc3b6q2v8r5x0m7n4t9w1yzb",
        name: "CI",
        keyId: "4Zt0aB9xQ2mLk7Rw",
        createdAt: "2026-03-02T09:30:00.000Z",
        enabled: true,
        expiresAt: null,
        lastUsedAt: "2026-03-02T11:02:00.000Z",
        limits: {
          modelAllowList: ["attic/*"],
          requestsPerMinute: 60,
          tokensPerMinute: null,
          parallelCalls: 4,
          budget: { total: null, daily: null, monthly: 50_000_000_000 },
        },
        spent: { total: 61_204_118_300, daily: 1_250_000_000, monthly: 18_070_500_000 },
        previousSecret: null,
      },
    ],
  });
export type ProjectKey = z.infer<typeof projectKeySchema>;

export const NODE_STATUSES = [
  "provisioning",
  "bootstrapping",
  "starting",
  "active",
  "degraded",
  "unreachable",
  "draining",
  "drained",
  "failed",
  "deleting",
] as const;
export const nodeStatusSchema = z.enum(NODE_STATUSES).meta({ id: "NodeStatus" });
export type NodeStatus = z.infer<typeof nodeStatusSchema>;

/** A workload of a node: the desired state and the daemon's last report. */
export const nodeWorkloadSchema = z
  .object({
    name: z.string(),
    workloadType: workloadTypeSchema,
    state: workloadStateSchema,
    ready: z.boolean(),
    version: z.string().describe("The version that the engine reports."),
    image: z.string().describe('The running image. "" while nothing runs.'),
    imageDigest: z.string(),
    generation: z.int().nullable().describe("The newest generation that is running. Null while nothing runs."),
    desiredImage: z.string(),
    desiredGeneration: z.int(),
    upToDate: z.boolean().describe("Whether the requested generation is running."),
    models: z.array(z.string()),
    startedAt: z.string().nullable(),
    restartCount: z.int(),
    lastExit: lastExitSchema.nullable(),
    message: z.string().describe("Why it is not ready or not up to date, in words."),
    progress: z.int().nullable().describe("Progress of an image pull, in percent."),
  })
  .meta({ id: "NodeWorkload" });
export type NodeWorkload = z.infer<typeof nodeWorkloadSchema>;

export const nodeSchema = z
  .object({
    id: z.string(),
    userId: z.string(),
    projectId: z.string(),
    status: nodeStatusSchema,
    name: z.string(),
    identifier: z.string(),
    publicIp: z.string(),
    directSecrets: z.boolean(),
    connectors: z.array(z.string()),
    engineConfig: z.union([engineConfigSchema, z.strictObject({})]),
    createdAt: z.string(),
    operatingSystem: z.string(),
    /** The reason for the status, in words. */
    statusMessage: z.string(),
    statusSince: z.string(),
    planId: z.string(),
    daemonVersion: z.string().describe('The running version. "" before a daemon has enrolled.'),
    desiredDaemonVersion: z
      .string()
      .nullable()
      .describe(
        "The requested version: of this node, otherwise of its project, otherwise of the fleet. Null: the daemon is not updated.",
      ),
    daemonUpdate: daemonUpdateSchema
      .nullable()
      .describe("The state of the daemon's last update, as it reports it. Null before the first."),
    lastSeenAt: z.string().nullable().describe("When the daemon was last heard from. Null: never."),
    conditions: z.array(conditionSchema).describe("What the daemon last reported about its machine."),
    workloads: z
      .array(nodeWorkloadSchema)
      .describe(
        "The workloads that the node should run, and what its daemon last reported about them. Empty while it is drained.",
      ),
  })
  .meta({
    id: "Node",
    examples: [
      {
        id: "nod_01kc3b6q2v8r5x0m7n4t9w1yzd",
        userId: "usr_01kc3b6q2v8r5x0m7n4t9w1yzb",
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        status: "active",
        statusMessage: "All workloads are ready.",
        statusSince: "2026-03-02T09:31:12.000Z",
        name: "Local",
        identifier: "local",
        planId: "byo",
        publicIp: "192.0.2.7",
        directSecrets: false,
        connectors: [],
        engineConfig: { preset: "fairlead-demo" },
        createdAt: "2026-03-02T09:30:00.000Z",
        operatingSystem: "Debian GNU/Linux 12 (bookworm)",
        daemonVersion: "0.1.0",
        desiredDaemonVersion: null,
        daemonUpdate: null,
        lastSeenAt: "2026-03-02T11:04:40.000Z",
        conditions: [
          {
            type: "disk",
            status: "problem",
            reason: "disk_pressure",
            message: "the disk is 91 % full, 8.2 GiB are free",
            since: "2026-03-02T11:04:30.000Z",
          },
        ],
        workloads: [
          {
            name: "engine",
            workloadType: "WORKLOAD_TYPE_ENGINE",
            state: "running",
            ready: true,
            version: "1.0.0",
            image: "fairlead/demo-engine:1",
            imageDigest: "sha256:5b0bcabd1ed22e9fb1310cf6c2dec7cdef19f0ad69efa1f392e94a4333501270",
            generation: 1,
            desiredImage: "fairlead/demo-engine:1",
            desiredGeneration: 1,
            upToDate: true,
            models: ["tinychat-6m"],
            startedAt: "2026-03-02T09:31:02.418Z",
            restartCount: 0,
            lastExit: null,
            message: "",
            progress: null,
          },
        ],
      },
    ],
  });
export type Node = z.infer<typeof nodeSchema>;

/** An event of a node. `status` is set if the node entered a status. */
export const nodeEventSchema = z
  .object({
    id: z.string(),
    at: z.string(),
    kind: z.string(),
    status: nodeStatusSchema.nullable(),
    message: z.string(),
  })
  .meta({
    id: "NodeEvent",
    examples: [
      {
        id: "evt_01kc3b6q2v8r5x0m7n4t9w1yze",
        at: "2026-03-02T09:31:12.000Z",
        kind: "reported_ready",
        status: "active",
        message: "All workloads are ready.",
      },
    ],
  });
export type NodeEvent = z.infer<typeof nodeEventSchema>;

/** An audit event; `docs/audit.md` lists the actions. */
export const auditEventSchema = z
  .object({
    id: z.string(),
    at: z.string(),
    action: z.string(),
    actor: z.object({
      type: z.enum(["user", "node", "system"]),
      id: z.string().describe("The ID of a user or node. For `system`, the component."),
      email: z.string().optional().describe("The user's email address at that time."),
    }),
    projectId: z.string().nullable().describe("Null for events outside projects."),
    resource: z.object({ type: z.string(), id: z.string(), name: z.string() }),
    address: z.string().describe('The client\'s IP address. "" if there was no request.'),
    requestId: z.string().describe('The `x-request-id` of the request. "" if there was no request.'),
    detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
  })
  .meta({
    id: "AuditEvent",
    examples: [
      {
        id: "aud_01kc3b6q2v8r5x0m7n4t9w1yzg",
        at: "2026-03-02T09:30:00.000Z",
        action: "node.update",
        actor: { type: "user", id: "usr_01kc3b6q2v8r5x0m7n4t9w1yzb", email: "ann@example.org" },
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        resource: { type: "node", id: "nod_01kc3b6q2v8r5x0m7n4t9w1yzd", name: "Rack 1" },
        address: "192.0.2.7",
        requestId: "req_01kc3b6q2v8r5x0m7n4t9w1yzh",
        detail: { fields: "engineConfig" },
      },
    ],
  });
export type AuditEvent = z.infer<typeof auditEventSchema>;
