import type { Dialect } from "@fairlead/dialects/calls/dialect";
import type { ChatQuirks } from "@fairlead/dialects/convert/bridge-call";
import type { ProviderPresetName } from "@fairlead/protocol/providers";

/** Well-known OpenAI-compatible endpoints and their differences. Pure. `docs/providers.md` is generated from here. */

export interface ProviderPreset {
  /** Display name. */
  readonly title: string;
  /** Null if it differs per customer. */
  readonly baseUrl: string | null;
  readonly protocols: readonly Dialect[];
  /** Null if none is needed by default. */
  readonly credential: CredentialForm | null;
  /** Sent with every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether `GET {base}/models` lists the available models. */
  readonly discovery: boolean;
  /** A path that requires a valid credential, if the list of models is public. */
  readonly credentialPath?: string;
  readonly quirks: ChatQuirks;
  /** The source of these facts. */
  readonly source: string;
}

export interface CredentialForm {
  /** Lowercase. */
  readonly header: string;
  /** Prefix of the value, with a space. */
  readonly scheme: "Bearer" | "";
}

export const BEARER: CredentialForm = { header: "authorization", scheme: "Bearer" };

const MAX_COMPLETION_TOKENS = "max_completion_tokens";

export const PROVIDER_PRESETS: Readonly<Record<ProviderPresetName, ProviderPreset>> = {
  openai: {
    title: "OpenAI",
    baseUrl: "https://api.openai.com/v1",
    protocols: ["chat", "responses"],
    credential: BEARER,
    discovery: true,
    // Its reasoning models reject `max_tokens`.
    quirks: { outputLimit: MAX_COMPLETION_TOKENS, developerRole: true },
    source: "https://platform.openai.com/docs/api-reference/chat/create",
  },
  anthropic: {
    title: "Anthropic, with its OpenAI-compatible endpoint",
    baseUrl: "https://api.anthropic.com/v1",
    protocols: ["chat"],
    credential: BEARER,
    // The list belongs to the native API, which requires its own credential header and version.
    discovery: false,
    // The provider merges system and developer messages.
    quirks: { outputLimit: MAX_COMPLETION_TOKENS, developerRole: true },
    source: "https://docs.anthropic.com/en/api/openai-sdk",
  },
  gemini: {
    title: "Google Gemini, with its OpenAI-compatible endpoint",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
    protocols: ["chat"],
    credential: BEARER,
    discovery: true,
    quirks: { outputLimit: MAX_COMPLETION_TOKENS },
    source: "https://ai.google.dev/gemini-api/docs/openai",
  },
  mistral: {
    title: "Mistral",
    baseUrl: "https://api.mistral.ai/v1",
    protocols: ["chat"],
    credential: BEARER,
    discovery: true,
    quirks: { outputLimit: "max_tokens" },
    source: "https://docs.mistral.ai/api",
  },
  groq: {
    title: "Groq",
    baseUrl: "https://api.groq.com/openai/v1",
    protocols: ["chat", "responses"],
    credential: BEARER,
    discovery: true,
    quirks: { outputLimit: MAX_COMPLETION_TOKENS },
    source: "https://console.groq.com/docs/openai",
  },
  together: {
    title: "Together",
    baseUrl: "https://api.together.xyz/v1",
    protocols: ["chat"],
    credential: BEARER,
    discovery: true,
    quirks: { outputLimit: "max_tokens" },
    source: "https://docs.together.ai/docs/openai-api-compatibility",
  },
  fireworks: {
    title: "Fireworks",
    baseUrl: "https://api.fireworks.ai/inference/v1",
    protocols: ["chat", "responses"],
    credential: BEARER,
    discovery: true,
    quirks: { outputLimit: "max_tokens", thinkingField: "reasoning_content" },
    source: "https://docs.fireworks.ai/tools-sdks/openai-compatibility",
  },
  deepseek: {
    title: "DeepSeek",
    baseUrl: "https://api.deepseek.com/v1",
    protocols: ["chat"],
    credential: BEARER,
    discovery: true,
    // Turns with tool calls require their reasoning.
    quirks: { outputLimit: "max_tokens", thinkingField: "reasoning_content" },
    source: "https://api-docs.deepseek.com/guides/thinking_mode",
  },
  openrouter: {
    title: "OpenRouter",
    baseUrl: "https://openrouter.ai/api/v1",
    protocols: ["chat", "responses"],
    credential: BEARER,
    discovery: true,
    credentialPath: "/key",
    quirks: { outputLimit: "max_tokens", developerRole: true, thinkingField: "reasoning" },
    source: "https://openrouter.ai/docs/api-reference/overview",
  },
  xai: {
    title: "xAI",
    baseUrl: "https://api.x.ai/v1",
    protocols: ["chat", "responses"],
    credential: BEARER,
    discovery: true,
    quirks: { outputLimit: MAX_COMPLETION_TOKENS },
    source: "https://docs.x.ai/docs/api-reference",
  },
  cerebras: {
    title: "Cerebras",
    baseUrl: "https://api.cerebras.ai/v1",
    protocols: ["chat"],
    credential: BEARER,
    discovery: true,
    quirks: { outputLimit: MAX_COMPLETION_TOKENS },
    source: "https://inference-docs.cerebras.ai/resources/openai",
  },
  "azure-openai": {
    title: "Azure OpenAI and similar endpoints: `https://<resource>.openai.azure.com/openai/v1`",
    baseUrl: null,
    protocols: ["chat", "responses"],
    credential: { header: "api-key", scheme: "" },
    // It lists what can be deployed; only deployments can be called.
    discovery: false,
    quirks: { outputLimit: MAX_COMPLETION_TOKENS, developerRole: true },
    source: "https://learn.microsoft.com/en-us/azure/ai-foundry/openai/api-version-lifecycle",
  },
  ollama: {
    title: "Ollama",
    baseUrl: "http://127.0.0.1:11434/v1",
    protocols: ["chat"],
    credential: null,
    discovery: true,
    quirks: { outputLimit: "max_tokens", thinkingField: "reasoning" },
    source: "https://docs.ollama.com/api/openai-compatibility",
  },
  vllm: {
    title: "vLLM",
    baseUrl: "http://127.0.0.1:8000/v1",
    protocols: ["chat"],
    credential: null,
    discovery: true,
    quirks: { outputLimit: MAX_COMPLETION_TOKENS, thinkingField: "reasoning_content" },
    source: "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
  },
  "llama.cpp": {
    title: "llama.cpp's server",
    baseUrl: "http://127.0.0.1:8080/v1",
    protocols: ["chat"],
    credential: null,
    discovery: true,
    quirks: { outputLimit: "max_tokens", thinkingField: "reasoning_content" },
    source: "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
  },
  "lm-studio": {
    title: "LM Studio",
    baseUrl: "http://127.0.0.1:1234/v1",
    protocols: ["chat"],
    credential: null,
    discovery: true,
    quirks: { outputLimit: "max_tokens" },
    source: "https://lmstudio.ai/docs/developer/openai-compat",
  },
};
