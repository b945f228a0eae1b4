import { z } from "zod";

/** Secrets of nodes: their names, what a workload needs of them, and how they travel to the daemon. */

/** A secret's name is a file's name on the node: no slash, no leading dot; and none that an agent's secret is known by. */
export const secretNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/, "must be 1 to 128 of A-Z a-z 0-9 _ . - and start with a letter or _")
  .regex(/^(?!agt_[0-9a-z]{26}\.)/, "must not begin with the id of an agent and a dot");

/** What the link and the vault know a secret by: an engine's by its name, an agent's by `<agent id>.<name>`. */
export const secretKeySchema = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,191}$/);

/** Where a workload finds the secrets that it takes as files, each under its name. */
export const SECRETS_MOUNT_PATH = "/run/secrets";

/** A secret as people see it. No answer ever shows a value. */
export const nodeSecretSchema = z
  .object({
    name: secretNameSchema,
    version: z.number().int().describe("Grows with every change; a deleted secret that is set again goes on counting."),
    updatedAt: z.string(),
    stale: z.boolean().describe("Sealed to a key that the node no longer has, since it enrolled anew: set it again."),
  })
  .meta({ id: "NodeSecret" });
export type NodeSecret = z.infer<typeof nodeSecretSchema>;

/** The file with a workload's own token, beside its secrets. */
export const WORKER_TOKEN_FILE = "fairlead-token";

export const workloadSecretSchema = z.object({
  name: secretNameSchema,
  /** Left out: its name. */
  key: secretKeySchema.optional(),
  /** `registry`: for the pull of its image alone; the workload never sees it. */
  as: z.enum(["file", "env", "registry"]),
  /** Names one value, opaque and never used twice, not even by a restored store. Null: not set; the workload waits for it. */
  version: z.string().nullable(),
});
export type WorkloadSecret = z.infer<typeof workloadSecretSchema>;

export function keyOfSecret({ name, key }: Pick<WorkloadSecret, "name" | "key">): string {
  return key ?? name;
}

/** The daemon asks for one of its node's secrets by its key; the node comes from the credential. */
export const secretRequestSchema = z.object({ name: secretKeySchema });
export type SecretRequest = z.infer<typeof secretRequestSchema>;

export const secretAnswerSchema = z.discriminatedUnion("state", [
  z.object({
    state: z.literal("sealed"),
    version: z.string(),
    /** A compact JWE (ECDH-ES over X25519, A256GCM) for the node's sealing key; its header carries a `SecretBinding`. */
    jwe: z.string(),
  }),
  z.object({ state: z.literal("missing") }),
  /** It was sealed to a former key of this node, and nobody can open it any more. */
  z.object({ state: z.literal("stale") }),
]);
export type SecretAnswer = z.infer<typeof secretAnswerSchema>;

/** The member of the JWE's protected header that says which value this is, so that no secret can stand in for another. */
export const SECRET_BINDING = "fairlead-secret";

export function secretBinding(nodeId: string, name: string, version: string): string {
  return `${nodeId} ${name} ${version}`;
}
