import type { Dialect } from "@fairlead/dialects/calls/dialect";
import type { ChatQuirks } from "@fairlead/dialects/convert/bridge-call";
import type { EngineConfig, Health, PresetName, Resources, Volume } from "@fairlead/protocol/engine-config";
import { OPENCLAW_START } from "./openclaw-start.ts";

/** What a preset fills in where the engine config leaves it out. Figures: each engine's own manual, named beside it. */
export interface EnginePreset {
  readonly image: string | null;
  readonly args: readonly string[];
  /** Under what the config sets. */
  readonly env: (port: number) => Readonly<Record<string, string>>;
  readonly port: number;
  readonly health: Health;
  readonly versionPath: string | null;
  /** Null: asked of the engine. */
  readonly models: readonly string[] | null;
  /** Where it keeps what it downloads; a config's own volumes take their place. */
  readonly volumes: readonly Volume[];
  /** Under what the config sets, one by one. */
  readonly resources: Resources;
  readonly update: "start-first" | "stop-first";
  /** What the engine speaks well, whatever it claims, and how its chat dialect differs. */
  readonly protocols: readonly Dialect[];
  readonly chat: ChatQuirks;
}

const health: Health = {
  path: "/health",
  intervalSeconds: 5,
  timeoutSeconds: 3,
  startPeriodSeconds: 600,
  failureThreshold: 3,
  probe: "http",
};

/** A token may take a while on a slow machine, and weights may be downloaded first. */
const ASKED_FOR_A_TOKEN: Health = { ...health, timeoutSeconds: 30, startPeriodSeconds: 3600, probe: "completion" };

const BASE: Omit<EnginePreset, "image"> = {
  args: [],
  env: () => ({}),
  port: 8080,
  health,
  versionPath: null,
  models: null,
  volumes: [],
  resources: {},
  update: "stop-first",
  protocols: ["chat"],
  chat: {},
};

/** llama.cpp's own responses streams lack indexes, and clients drop them. Its templates take thinking back. */
const LLAMA_CPP = { protocols: ["chat"], chat: { thinkingField: "reasoning_content" } } as const;

/** One thread and no prompt cache: on a small machine threads wait for each other, and the cache grows without use. */
const demoArgs = ["--alias", "tinychat-6m", "-np", "4", "-c", "8192", "-t", "1", "--cache-ram", "0", "--metrics"];

export const ENGINE_PRESETS: Readonly<Record<PresetName, EnginePreset>> = {
  "fairlead-demo": {
    ...BASE,
    image: "fairlead/demo-engine:1",
    args: demoArgs,
    health: { ...health, startPeriodSeconds: 60 },
    update: "start-first",
    ...LLAMA_CPP,
  },
  // github.com/ggml-org/llama.cpp: tools/server/README.md. The config's `args` name the model: `-hf …` or `-m …`.
  "llama.cpp": {
    ...BASE,
    image: "ghcr.io/ggml-org/llama.cpp:server",
    env: (port) => ({
      LLAMA_ARG_HOST: "0.0.0.0",
      LLAMA_ARG_PORT: String(port),
      LLAMA_CACHE: "/cache",
      HF_HOME: "/cache/huggingface",
    }),
    health: ASKED_FOR_A_TOKEN,
    versionPath: "/props",
    volumes: [{ name: "llama-cpp-cache", mountPath: "/cache" }],
    ...LLAMA_CPP,
  },
  // docs.vllm.ai: deployment/docker. The config's `args` name the model; its processes share tensors in /dev/shm.
  vllm: {
    ...BASE,
    image: "vllm/vllm-openai:latest",
    env: () => ({ HOME: "/root", TRITON_CACHE_DIR: "/root/.cache/triton", VLLM_NO_USAGE_STATS: "1" }),
    port: 8000,
    health: ASKED_FOR_A_TOKEN,
    versionPath: "/version",
    volumes: [{ name: "vllm-cache", mountPath: "/root/.cache" }],
    resources: { gpus: "all", shmMb: 8192 },
    chat: { outputLimit: "max_completion_tokens", thinkingField: "reasoning_content" },
  },
  // docs.ollama.com: docker, api/version. Models are pulled into it later, so without any it is healthy all the same.
  ollama: {
    ...BASE,
    image: "ollama/ollama:latest",
    env: (port) => ({ HOME: "/root", OLLAMA_HOST: `0.0.0.0:${port}` }),
    port: 11_434,
    health: { ...ASKED_FOR_A_TOKEN, path: "/api/version", startPeriodSeconds: 600 },
    versionPath: "/api/version",
    volumes: [{ name: "ollama", mountPath: "/root/.ollama" }],
    chat: { outputLimit: "max_tokens", thinkingField: "reasoning" },
  },
  // docs.openclaw.ai: install/docker, gateway; run. An agent gateway: a question to it costs its owner money, so none is asked.
  openclaw: {
    ...BASE,
    image: "ghcr.io/openclaw/openclaw:latest",
    args: ["node", "--input-type=module", "--eval", OPENCLAW_START],
    env: (port) => ({ HOME: "/home/node", PORT: String(port) }),
    port: 18_789,
    health: { ...health, path: "/healthz" },
    // It names itself three times.
    models: ["openclaw/default"],
    // Its user's whole home: a folder that the image does not have would belong to root.
    volumes: [{ name: "openclaw", mountPath: "/home/node" }],
    protocols: ["chat", "responses"],
  },
  custom: { ...BASE, image: null },
};

export function presetOf(config: Pick<EngineConfig, "preset">): EnginePreset {
  return ENGINE_PRESETS[config.preset ?? "custom"];
}
