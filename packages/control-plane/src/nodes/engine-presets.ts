import type { EngineConfig, Health, PresetName } from "@fairlead/protocol/engine-config";
import type { ChatQuirks } from "../inference/bridge/bridge-call.ts";
import type { Dialect } from "../inference/dialect.ts";

/** What a preset fills in where the engine config leaves it out. Figures for llama.cpp: its server's own manual. */
export interface EnginePreset {
  readonly image: string | null;
  readonly args: readonly string[];
  readonly port: number;
  readonly health: Health;
  readonly versionPath: string | null;
  readonly update: "start-first" | "stop-first";
  /** What the engine speaks well, whatever it claims (design §8), and how its chat dialect differs. */
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

/** llama.cpp's own responses streams lack indexes, and clients drop them. Its templates take thinking back. */
const LLAMA_CPP = { protocols: ["chat"], chat: { thinkingField: "reasoning_content" } } as const;

/** One thread and no prompt cache: on a small machine threads wait for each other, and the cache grows without use. */
const demoArgs = ["--alias", "tinychat-6m", "-np", "4", "-c", "8192", "-t", "1", "--cache-ram", "0", "--metrics"];

export const ENGINE_PRESETS: Readonly<Record<PresetName, EnginePreset>> = {
  "fairlead-demo": {
    image: "fairlead/demo-engine:1",
    args: demoArgs,
    port: 8080,
    health: { ...health, startPeriodSeconds: 60 },
    versionPath: null,
    update: "start-first",
    ...LLAMA_CPP,
  },
  "llama.cpp": {
    image: "ghcr.io/ggml-org/llama.cpp:server",
    args: ["--host", "0.0.0.0", "--port", "8080"],
    port: 8080,
    health,
    versionPath: null,
    update: "stop-first",
    ...LLAMA_CPP,
  },
  custom: {
    image: null,
    args: [],
    port: 8080,
    health,
    versionPath: null,
    update: "stop-first",
    protocols: ["chat"],
    chat: {},
  },
};

export function presetOf(config: Pick<EngineConfig, "preset">): EnginePreset {
  return ENGINE_PRESETS[config.preset ?? "custom"];
}
