import type { LocalAdmin } from "@fairlead/control-plane/admin";
import type { LocalOperations } from "@fairlead/control-plane/operations";
import type { RunningServer } from "@fairlead/control-plane/server";
import { z } from "zod";
import { CliError, UsageError } from "./cli-error.ts";
import type { Environment } from "./config.ts";

/** The control plane as the command line uses it; loaded only by the commands that need it, as it is large. */
export interface ControlPlane {
  startServer(): Promise<RunningServer>;
  openLocalAdmin(): Promise<LocalAdmin>;
  /** @param use its failures are explained as those of a start are. */
  withOperations<T>(use: (operations: LocalOperations) => Promise<T>): Promise<T>;
}

export interface ControlPlaneSource {
  readonly configFile?: string | undefined;
  readonly env: Environment;
}

export type LoadControlPlane = (source: ControlPlaneSource) => Promise<ControlPlane>;

const mistakesSchema = z.object({ mistakes: z.array(z.object({ path: z.string(), message: z.string() })).min(1) });
const startErrorSchema = z.object({ name: z.literal("StartError"), message: z.string() });

export const loadControlPlane: LoadControlPlane = async ({ configFile, env }) => {
  const { loadConfig } = await import("@fairlead/control-plane/config");
  const config = await explained(configFile, () =>
    loadConfig({ ...(configFile === undefined ? {} : { file: configFile }), env }),
  );
  return {
    startServer: async () => {
      const { startServer } = await import("@fairlead/control-plane/server");
      return explained(configFile, () => startServer(config));
    },
    openLocalAdmin: async () => {
      const { openLocalAdmin } = await import("@fairlead/control-plane/admin");
      return explained(configFile, () => openLocalAdmin(config));
    },
    withOperations: async (use) => {
      const { openLocalOperations } = await import("@fairlead/control-plane/operations");
      return explained(configFile, () => use(openLocalOperations(config)));
    },
  };
};

async function explained<T>(configFile: string | undefined, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw explain(error, configFile);
  }
}

/**
 * What the operator can mend becomes a `CliError`; anything else passes unchanged. Told by form, since the classes are in
 * the part that is loaded lazily.
 */
export function explain(error: unknown, configFile: string | undefined): unknown {
  const start = startErrorSchema.safeParse(error);
  if (start.success) return new CliError(start.data.message, { cause: error });
  const wrong = mistakesSchema.safeParse(error);
  if (!wrong.success) return error;
  const lines = wrong.data.mistakes.map(({ path, message }) => `  ${path}: ${message}`);
  return new UsageError(
    [`The configuration is wrong. Correct this in ${configFile ?? "the environment"}:`, ...lines].join("\n"),
  );
}
