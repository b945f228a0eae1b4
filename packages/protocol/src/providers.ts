import { z } from "zod";

/** Providers and aliases as they stand on the wire. Amounts are nano-dollars. */

/** Well-known providers; what they fill in stands in docs/providers.md. */
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
  input: z.number().describe("For a million input tokens."),
  cachedInput: z.number().optional().describe("For a million input tokens that the upstream had in its cache."),
  output: z.number().describe("For a million output tokens."),
  perRequest: z.number().describe("For each call."),
});

export const providerModelOnWireSchema = z.object({
  name: z.string().describe("As the provider calls it."),
  contextTokens: z.number().int().optional(),
  maxOutputTokens: z.number().int().optional(),
  prices: pricesOnWireSchema.optional(),
});

export const providerSchema = z
  .object({
    projectId: z.string().describe('"" for a provider of the whole platform.'),
    name: z.string().describe("The part of a model's name before the first `/`."),
    scope: z.enum(["project", "platform"]).describe("Whose it is. The platform's come from the server's settings."),
    preset: z.string().nullable(),
    baseUrl: z.string().describe('"" for a provider of the whole platform: that is the operator\'s matter.'),
    protocols: z.array(z.enum(["chat", "responses"])),
    hasCredential: z.boolean().describe("The credential itself is never answered."),
    credentialHeader: z.string(),
    headers: z.record(z.string(), z.string()),
    forwardHeaders: z.array(z.string()),
    timeouts: z.object({
      connectSeconds: z.number(),
      firstByteSeconds: z.number(),
      idleSeconds: z.number(),
      totalSeconds: z.number(),
    }),
    discovery: z.boolean().describe("Whether its models are asked of it, besides those in `models`."),
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
    message: z.string().describe("What was found, and what to do, for people."),
    status: z.number().int().nullable().describe("The provider's HTTP status; null where it gave none."),
    latencyMs: z.number().int(),
    models: z.array(z.string()).describe("What can be called, as the provider lists it or the settings name it."),
  })
  .meta({
    id: "ProviderCheck",
    examples: [
      {
        result: "ok",
        message: "The provider took the credential and lists 2 models.",
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
    targets: z.array(z.string()).describe("`<provider>/<model>`, the preferred one first."),
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
