import { z } from "zod";

/** Wire types of providers and aliases. Amounts are in nano-dollars. */

/** Wire formats of models. Each is specified in `packages/dialects/src/dialect-specs.ts`. */
export const DIALECTS = ["chat", "responses"] as const;

/** Well-known providers; docs/providers.md lists their defaults. */
export const PROVIDER_PRESET_NAMES = [
  "openai",
  "anthropic",
  "gemini",
  "mistral",
  "groq",
  "together",
  "fireworks",
  "deepseek",
  "openrouter",
  "xai",
  "cerebras",
  "azure-openai",
  "ollama",
  "vllm",
  "llama.cpp",
  "lm-studio",
] as const;
export type ProviderPresetName = (typeof PROVIDER_PRESET_NAMES)[number];

export const pricesOnWireSchema = z.object({
  input: z.number().describe("Per million input tokens."),
  cachedInput: z.number().optional().describe("Per million input tokens that the upstream read from its cache."),
  output: z.number().describe("Per million output tokens."),
  perRequest: z.number().describe("Per call."),
});

export const providerModelOnWireSchema = z.object({
  name: z.string().describe("The provider's name for the model."),
  contextTokens: z.number().int().optional(),
  maxOutputTokens: z.number().int().optional(),
  prices: pricesOnWireSchema.optional(),
});

export const providerSchema = z
  .object({
    projectId: z.string().describe('"" for a provider of the platform.'),
    name: z.string().describe("The part of a model name before the first `/`."),
    scope: z
      .enum(["project", "platform"])
      .describe("Whether the provider belongs to the platform (defined in the server's settings) or to the project."),
    preset: z.string().nullable(),
    baseUrl: z.string().describe('"" for a provider of the platform: only the operator sees it.'),
    protocols: z.array(z.enum(DIALECTS)),
    hasCredential: z.boolean().describe("The credential itself is never returned."),
    credentialHeader: z.string(),
    headers: z.record(z.string(), z.string()),
    forwardHeaders: z.array(z.string()),
    timeouts: z.object({
      connectSeconds: z.number(),
      firstByteSeconds: z.number(),
      idleSeconds: z.number(),
      totalSeconds: z.number(),
    }),
    discovery: z.boolean().describe("Whether models are also read from the provider's list, in addition to `models`."),
    models: z.array(providerModelOnWireSchema),
    quirks: z.object({
      outputLimit: z.enum(["max_tokens", "max_completion_tokens"]),
      developerRole: z.boolean(),
      thinkingField: z.enum(["reasoning_content", "reasoning", "none"]),
    }),
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({
    id: "Provider",
    examples: [
      {
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        name: "openai",
        scope: "project",
        preset: "openai",
        baseUrl: "https://api.openai.com/v1",
        protocols: ["chat", "responses"],
        hasCredential: true,
        credentialHeader: "authorization",
        headers: {},
        forwardHeaders: [],
        timeouts: { connectSeconds: 5, firstByteSeconds: 120, idleSeconds: 120, totalSeconds: 1800 },
        discovery: true,
        models: [],
        quirks: { outputLimit: "max_completion_tokens", developerRole: true, thinkingField: "none" },
        createdAt: "2026-03-02T09:30:00.000Z",
        updatedAt: "2026-03-02T09:30:00.000Z",
      },
    ],
  });
export type Provider = z.infer<typeof providerSchema>;

export const PROVIDER_CHECK_RESULTS = [
  "ok",
  "unreachable",
  "timeout",
  "credential_refused",
  "not_found",
  "refused",
  "not_understood",
] as const;

export const providerCheckSchema = z
  .object({
    result: z.enum(PROVIDER_CHECK_RESULTS),
    message: z.string().describe("The result and what to do about it, in words."),
    status: z.number().int().nullable().describe("The HTTP status of the provider's response. Null if there was none."),
    latencyMs: z.number().int(),
    models: z.array(z.string()).describe("The models that can be called, from the provider's list or the settings."),
  })
  .meta({
    id: "ProviderCheck",
    examples: [
      {
        result: "ok",
        message: "The provider accepted the credential and lists 2 models.",
        status: 200,
        latencyMs: 212,
        models: ["gpt-5.1", "gpt-5.1-mini"],
      },
    ],
  });
export type ProviderCheck = z.infer<typeof providerCheckSchema>;

export const modelAliasSchema = z
  .object({
    projectId: z.string(),
    name: z.string(),
    targets: z.array(z.string()).describe("`<provider>/<model>`, in order of preference."),
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({
    id: "ModelAlias",
    examples: [
      {
        projectId: "prj_01kc3b6q2v8r5x0m7n4t9w1yza",
        name: "fast",
        targets: ["nodes/qwen3-8b", "groq/qwen/qwen3-32b"],
        createdAt: "2026-03-02T09:30:00.000Z",
        updatedAt: "2026-03-02T09:30:00.000Z",
      },
    ],
  });
export type ModelAlias = z.infer<typeof modelAliasSchema>;
