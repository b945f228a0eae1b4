import type { LocalAdmin } from "@fairlead/control-plane/admin";
import type { RunningServer } from "@fairlead/control-plane/server";
import { z } from "zod";
import { CliError } from "./cli-error.ts";
import type { Environment } from "./config.ts";

/** The control plane as the command line uses it; loaded only by the commands that need it, as it is large. */
export interface ControlPlane {
  startServer(): Promise<RunningServer>;
  openLocalAdmin(): Promise<LocalAdmin>;
}

export interface ControlPlaneSource {
  readonly configFile?: string | undefined;
  readonly env: Environment;
}

export type LoadControlPlane = (source: ControlPlaneSource) => Promise<ControlPlane>;

const mistakesSchema = z.object({ mistakes: z.array(z.object({ path: z.string(), message: z.string() })).min(1) });

/** @throws CliError that lists every mistake of the configuration at once. */
export const loadControlPlane: LoadControlPlane = async ({ configFile, env }) => {
  const { loadConfig } = await import("@fairlead/control-plane/config");
  const read = (): ReturnType<typeof loadConfig> => {
    try {
      return loadConfig({ ...(configFile === undefined ? {} : { file: configFile }), env });
    } catch (error) {
      throw explainMistakes(error, configFile);
    }
  };
  const config = read();
  return {
    startServer: async () => (await import("@fairlead/control-plane/server")).startServer(config),
    openLocalAdmin: async () => (await import("@fairlead/control-plane/admin")).openLocalAdmin(config),
  };
};

/** A configuration error says all that is wrong at once, each with its path; anything else passes unchanged. */
export function explainMistakes(error: unknown, configFile: string | undefined): unknown {
  const parsed = mistakesSchema.safeParse(error);
  if (!parsed.success) return error;
  const where = configFile === undefined ? "the environment" : configFile;
  const lines = parsed.data.mistakes.map(({ path, message }) => `  ${path}: ${message}`);
  return new CliError([`The configuration is wrong. Correct this in ${where}:`, ...lines].join("\n"));
}
