import { z } from "zod";
import { secretNameSchema } from "./secrets.ts";
import { imageReferenceSchema } from "./values/image-reference.ts";

/** Engine settings of a node. The preset supplies defaults. */

export const PRESET_NAMES = ["fairlead-demo", "llama.cpp", "vllm", "ollama", "openclaw", "custom"] as const;
export type PresetName = (typeof PRESET_NAMES)[number];

/** `http`: the health path returns 2xx. `completion`: the engine also generates a token. `running`: its container is running. */
export const probeSchema = z.enum(["http", "completion", "running"]);

const seconds = z.number().int().min(1).max(3600);

export const healthSchema = z.strictObject({
  path: z.string().regex(/^\/\S*$/, "must start with /"),
  intervalSeconds: seconds,
  timeoutSeconds: seconds,
  startPeriodSeconds: z.number().int().min(0).max(3600),
  failureThreshold: z.number().int().min(1).max(100),
  probe: probeSchema,
});
export type Health = z.infer<typeof healthSchema>;

/** All GPUs, a number of them, or those with these ids (from `nvidia-smi -L`, or an index). */
export const gpusSchema = z.union([
  z.literal("all"),
  z.number().int().min(0).max(64),
  z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9:/._-]{0,127}$/, "must be a GPU ID"))
    .min(1)
    .max(64),
]);
export type Gpus = z.infer<typeof gpusSchema>;

export const resourcesSchema = z.strictObject({
  cpus: z.number().positive().max(1024).optional(),
  memoryMb: z.number().int().min(16).optional(),
  shmMb: z.number().int().min(1).optional(),
  /** Size of /tmp, which is in memory and counts toward the container's memory. */
  tmpMb: z.number().int().min(1).optional(),
  pids: z.number().int().min(1).optional(),
  gpus: gpusSchema.optional(),
});
export type Resources = z.infer<typeof resourcesSchema>;

/** `internet: false`: only the platform can be reached; requests still reach the container. */
export const networkSchema = z.strictObject({ internet: z.boolean().optional() });

export const volumeSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must match [a-z0-9][a-z0-9-]{0,39}"),
  mountPath: z.string().regex(/^\/[^:]+$/, "must be an absolute path without a colon"),
});
export type Volume = z.infer<typeof volumeSchema>;

export const environmentNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a valid environment variable name");

const MAX_SECRETS = 64;

/** `file`: in memory only, and changes apply immediately. `env`: a change restarts the engine, and Docker shows the value. */
const secretUseSchema = z.strictObject({ as: z.enum(["file", "env"]) });

/** A secret used as an environment variable needs a valid, unique name. */
export function checkEnvSecrets(
  {
    env = {},
    secrets = {},
  }: { env?: Record<string, string> | undefined; secrets?: Record<string, { as: string }> | undefined },
  context: z.core.$RefinementCtx,
): void {
  for (const [name, { as }] of Object.entries(secrets)) {
    if (as !== "env") continue;
    const fault = !environmentNameSchema.safeParse(name).success
      ? "must be a valid environment variable name, or be delivered as a file"
      : Object.hasOwn(env, name) && "is also set in `env`";
    if (fault) context.addIssue({ code: "custom", message: fault, path: ["secrets", name] });
  }
}

export const engineConfigSchema = z
  .strictObject({
    preset: z.enum(PRESET_NAMES).optional(),
    image: imageReferenceSchema.optional(),
    command: z.array(z.string().max(4096)).max(64).optional(),
    args: z.array(z.string().max(4096)).max(256).optional(),
    env: z.record(environmentNameSchema, z.string().max(32_768)).optional(),
    port: z.number().int().min(1).max(65_535).optional(),
    // An engine without a port is useless.
    health: healthSchema
      .extend({ probe: probeSchema.exclude(["running"]) })
      .partial()
      .optional(),
    volumes: z.array(volumeSchema).max(32).optional(),
    resources: resourcesSchema.optional(),
    network: networkSchema.optional(),
    init: z
      .boolean()
      .optional()
      .describe(
        "Whether Docker's init process runs as PID 1 and reaps orphaned processes. Default: true, unless the image has its own init process.",
      ),
    models: z.array(z.string().min(1).max(256)).max(256).optional(),
    update: z.enum(["start-first", "stop-first"]).optional(),
    secrets: z
      .record(secretNameSchema, secretUseSchema)
      .refine((secrets) => Object.keys(secrets).length <= MAX_SECRETS, `must be at most ${MAX_SECRETS}`)
      .optional(),
    registryAuthSecret: secretNameSchema.optional(),
  })
  .refine((config) => config.image !== undefined || (config.preset ?? "custom") !== "custom", {
    message: "set `image`, or a `preset` that has one",
    path: ["image"],
  })
  .superRefine(checkEnvSecrets)
  .meta({
    id: "EngineConfig",
    description: "The engine that a node runs. The preset supplies defaults; values set here override it.",
    examples: [
      { preset: "fairlead-demo" },
      { image: "ghcr.io/example/engine:2", port: 9000, health: { path: "/ready" }, resources: { memoryMb: 8192 } },
    ],
  });
export type EngineConfig = z.infer<typeof engineConfigSchema>;
