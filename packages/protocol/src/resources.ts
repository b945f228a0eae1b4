import { z } from "zod";
import { engineConfigSchema } from "./engine-config.ts";

/** The resources as they stand on the wire (interface, section 2). Times are RFC 3339, UTC, milliseconds. */

export const projectSchema = z.object({
  id: z.string(),
  userId: z.string(),
  name: z.string(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type Project = z.infer<typeof projectSchema>;

export const ROLES = ["owner", "admin", "member", "viewer"] as const;
export const roleSchema = z.enum(ROLES);
export type Role = z.infer<typeof roleSchema>;

export const projectKeySchema = z.object({
  id: z.string(),
  projectId: z.string(),
  userId: z.string(),
  name: z.string(),
  /** The public part of the key: safe in logs. */
  keyId: z.string(),
  /** The whole secret; only in the answer that creates it. */
  keyValue: z.string().optional(),
  createdAt: z.string(),
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
export const nodeStatusSchema = z.enum(NODE_STATUSES);
export type NodeStatus = z.infer<typeof nodeStatusSchema>;

export const nodeSchema = z.object({
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
  /** Why the status is what it is, for people. */
  statusMessage: z.string(),
  planId: z.string(),
});
export type Node = z.infer<typeof nodeSchema>;

/** One line of a node's history. `status` is set where the node entered one. */
export const nodeEventSchema = z.object({
  id: z.string(),
  at: z.string(),
  kind: z.string(),
  status: nodeStatusSchema.nullable(),
  message: z.string(),
});
