import { type EngineConfig, engineConfigSchema, PRESET_NAMES, type PresetName } from "@fairlead/protocol/engine-config";
import { workloadSpecSchema } from "@fairlead/protocol/workload";
import { describe, expect, it } from "vitest";
import { planWorkloads } from "./plan-desired.ts";

const NODE = "nod_1";

describe("planning a node's workloads", () => {
  it("plans nothing if no engine is configured", () => {
    expect(planWorkloads(NODE, null)).toEqual([]);
  });

  it("uses the preset only for what the config omits", () => {
    const [spec] = planWorkloads(NODE, {
      preset: "fairlead-demo",
      args: ["--alias", "mine"],
      health: { intervalSeconds: 1 },
      resources: { cpus: 1 },
    });
    expect(spec).toMatchObject({
      image: "fairlead/demo-engine:1",
      args: ["--alias", "mine"],
      port: 8080,
      health: { path: "/health", intervalSeconds: 1, timeoutSeconds: 3 },
      resources: { cpus: 1 },
    });
    expect(workloadSpecSchema.parse(spec)).toEqual(spec);
  });

  it("gives an engine internet access unless its config disables it, which changes the spec", () => {
    const [open, closed] = [undefined, false].map(
      (internet) => planWorkloads(NODE, { image: "a:1", network: { internet } })[0],
    );
    expect(open?.network).toEqual({ internet: true });
    expect(closed?.network).toEqual({ internet: false });
    expect(closed?.specHash).not.toBe(open?.specHash);
  });

  it("has the same hash for the same config in another order, and another hash for another config", () => {
    const hash = (config: unknown): string | undefined =>
      planWorkloads(NODE, engineConfigSchema.parse(config))[0]?.specHash;
    const first = hash({ image: "a:1", env: { A: "1", B: "2" }, port: 80 });
    expect(hash({ port: 80, env: { B: "2", A: "1" }, image: "a:1" })).toBe(first);
    expect(hash({ port: 81, env: { B: "2", A: "1" }, image: "a:1" })).not.toBe(first);
  });

  it.each(PRESET_NAMES)("plans %s with no other setting except, for a custom one, the image", (preset) => {
    const [spec] = planWorkloads(
      NODE,
      engineConfigSchema.parse({ preset, ...(preset === "custom" && { image: "a:1" }) }),
    );
    expect(workloadSpecSchema.parse(spec)).toEqual(spec);
  });

  it("makes an engine listen on the published port", () => {
    const env = (preset: PresetName, port?: number) => planWorkloads(NODE, { preset, ...(port && { port }) })[0]?.env;
    expect(env("llama.cpp", 9000)).toMatchObject({ LLAMA_ARG_HOST: "0.0.0.0", LLAMA_ARG_PORT: "9000" });
    expect(env("ollama")).toMatchObject({ OLLAMA_HOST: "0.0.0.0:11434" });
    expect(env("openclaw", 80)).toMatchObject({ PORT: "80" });
  });

  it("merges the preset's settings with the config's, and the config takes precedence", () => {
    const [spec] = planWorkloads(NODE, {
      preset: "vllm",
      env: { VLLM_NO_USAGE_STATS: "0" },
      resources: { gpus: ["GPU-1"] },
      volumes: [],
    });
    expect(spec).toMatchObject({ resources: { gpus: ["GPU-1"], shmMb: 8192 }, volumes: [] });
    expect(spec?.env).toMatchObject({ VLLM_NO_USAGE_STATS: "0", HOME: "/root" });
  });

  it("keeps the hashes of earlier configs, so that an upgrade restarts no engine", () => {
    const hash = (config: EngineConfig) => planWorkloads(NODE, config)[0]?.specHash.slice(0, 16);
    expect(hash({ preset: "fairlead-demo" })).toBe("21c57d6961c25654");
    expect(hash({ image: "a:1", env: { A: "1" }, resources: { cpus: 1 } })).toBe("48bb10516f612496");
  });

  it("rejects a config that has no image and no preset with one", () => {
    expect(engineConfigSchema.safeParse({ port: 80 }).error?.issues[0]?.path).toEqual(["image"]);
    expect(engineConfigSchema.safeParse({ preset: "custom" }).success).toBe(false);
  });

  describe("with secrets", () => {
    const plan = (config: unknown, held: Record<string, string> = {}, providerKeys: readonly string[] = []) => {
      const known = Object.entries(held).map(([name, version]) => {
        return [name, { version, providerKey: providerKeys.includes(name) }] as const;
      });
      const [spec] = planWorkloads(NODE, engineConfigSchema.parse(config), { held: new Map(known) });
      if (!spec) throw new Error("an engine is configured");
      return spec;
    };

    it("adds nothing for a config that names none, whatever the node has", () => {
      const plain = plan({ image: "a:1" });
      expect(plan({ image: "a:1" }, { OTHER: "1.a" })).toEqual(plain);
      expect("secrets" in plain).toBe(false);
    });

    it("lists those that the config or a provider key needs, with null for one that is not set", () => {
      const config = { image: "a:1", secrets: { B: { as: "env" }, A: { as: "file" } }, registryAuthSecret: "REG" };
      const spec = plan(config, { B: "2.b", OPENAI_API_KEY: "1.o", UNUSED: "1.u" }, ["OPENAI_API_KEY"]);
      expect(spec.secrets).toEqual([
        { name: "A", as: "file", version: null },
        { name: "B", as: "env", version: "2.b" },
        { name: "OPENAI_API_KEY", as: "file", version: "1.o" },
        { name: "REG", as: "registry", version: null },
      ]);
      expect(workloadSpecSchema.parse(spec)).toEqual(spec);
    });

    it("lets the config read a provider key from the environment", () => {
      const config = { image: "a:1", secrets: { OPENAI_API_KEY: { as: "env" } } };
      const spec = plan(config, { OPENAI_API_KEY: "1.o" }, ["OPENAI_API_KEY"]);
      expect(spec.secrets).toEqual([{ name: "OPENAI_API_KEY", as: "env", version: "1.o" }]);
    });

    it("changes the hash for a changed variable or a different set of files, not for a changed file or registry login", () => {
      const file = { image: "a:1", secrets: { A: { as: "file" } } };
      const env = { image: "a:1", secrets: { A: { as: "env" } } };
      const login = { image: "a:1", registryAuthSecret: "A" };
      expect(plan(file, { A: "2.b" }).specHash).toBe(plan(file, { A: "1.a" }).specHash);
      expect(plan(env, { A: "2.b" }).specHash).not.toBe(plan(env, { A: "1.a" }).specHash);
      expect(plan(file, { A: "1.a" }).specHash).not.toBe(plan({ image: "a:1" }).specHash);
      expect(plan(login, { A: "2.b" }).specHash).toBe(plan({ image: "a:1" }).specHash);
    });

    it("rejects invalid variable names, variables that are set twice, and names that could leave the folder", () => {
      const refused = (config: object): readonly PropertyKey[] | undefined =>
        engineConfigSchema.safeParse({ image: "a:1", ...config }).error?.issues[0]?.path;
      expect(refused({ secrets: { "a.b": { as: "env" } } })).toEqual(["secrets", "a.b"]);
      expect(refused({ env: { A: "1" }, secrets: { A: { as: "env" } } })).toEqual(["secrets", "A"]);
      expect(refused({ env: { A: "1" }, secrets: { A: { as: "file" } } })).toBeUndefined();
      for (const name of ["../x", ".x", "a/b", "a\n", ""]) {
        expect(refused({ secrets: { [name]: { as: "file" } } })).toEqual(["secrets", name]);
        expect(refused({ registryAuthSecret: name })).toEqual(["registryAuthSecret"]);
      }
    });
  });
});
