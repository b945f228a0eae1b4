import { z } from "zod";
import { secretNameSchema } from "./secrets.ts";

/** What a person writes to say which engine a node runs. A preset fills in what is left out; what is set wins. */

export const PRESET_NAMES = ["fairlead-demo", "llama.cpp", "vllm", "ollama", "openclaw", "custom"] as const;
export type PresetName = (typeof PRESET_NAMES)[number];

/** `http`: the health path answers 2xx. `completion`: the engine also answers one real token. `running`: its container runs. */
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

/** Every GPU, so many of them, or those with these ids (`nvidia-smi -L` shows them; an index is an id too). */
export const gpusSchema = z.union([
  z.literal("all"),
  z.number().int().min(0).max(64),
  z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9:/._-]{0,127}$/, "must be a GPU's id"))
    .min(1)
    .max(64),
]);
export type Gpus = z.infer<typeof gpusSchema>;

export const resourcesSchema = z.strictObject({
  cpus: z.number().positive().max(1024).optional(),
  memoryMb: z.number().int().min(16).optional(),
  shmMb: z.number().int().min(1).optional(),
  pids: z.number().int().min(1).optional(),
  gpus: gpusSchema.optional(),
});
export type Resources = z.infer<typeof resourcesSchema>;

export const volumeSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must match [a-z0-9][a-z0-9-]{0,39}"),
  mountPath: z.string().regex(/^\/[^:]+$/, "must be an absolute path without a colon"),
});
export type Volume = z.infer<typeof volumeSchema>;

export const environmentNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be an environment variable's name");

const MAX_SECRETS = 64;

/** `file`: rests in memory only and follows a change at once. `env`: a change restarts the engine, and Docker shows it. */
const secretUseSchema = z.strictObject({ as: z.enum(["file", "env"]) });

/** A secret that is taken as an environment variable must be able to be one, and be the only one of that name. */
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
      ? "must be an environment variable's name, or be taken as a file"
      : Object.hasOwn(env, name) && "is set in `env` too";
    if (fault) context.addIssue({ code: "custom", message: fault, path: ["secrets", name] });
  }
}

export const engineConfigSchema = z
  .strictObject({
    preset: z.enum(PRESET_NAMES).optional(),
    image: z.string().min(1).max(512).regex(/^\S+$/, "must not hold white space").optional(),
    command: z.array(z.string().max(4096)).max(64).optional(),
    args: z.array(z.string().max(4096)).max(256).optional(),
    env: z.record(environmentNameSchema, z.string().max(32_768)).optional(),
    port: z.number().int().min(1).max(65_535).optional(),
    // An engine that answers nobody serves nobody.
    health: healthSchema
      .extend({ probe: probeSchema.exclude(["running"]) })
      .partial()
      .optional(),
    volumes: z.array(volumeSchema).max(32).optional(),
    resources: resourcesSchema.optional(),
    models: z.array(z.string().min(1).max(256)).max(256).optional(),
    update: z.enum(["start-first", "stop-first"]).optional(),
    secrets: z
      .record(secretNameSchema, secretUseSchema)
      .refine((secrets) => Object.keys(secrets).length <= MAX_SECRETS, `must be at most ${MAX_SECRETS}`)
      .optional(),
    registryAuthSecret: secretNameSchema.optional(),
  })
  .refine((config) => config.image !== undefined || (config.preset ?? "custom") !== "custom", {
    message: "set `image`, or a `preset` that brings one",
    path: ["image"],
  })
  .superRefine(checkEnvSecrets)
  .meta({
    id: "EngineConfig",
    description: "Which engine a node runs. A preset fills in what is left out; what is set wins.",
    examples: [
      { preset: "fairlead-demo" },
      { image: "ghcr.io/example/engine:2", port: 9000, health: { path: "/ready" }, resources: { memoryMb: 8192 } },
    ],
  });
export type EngineConfig = z.infer<typeof engineConfigSchema>;
