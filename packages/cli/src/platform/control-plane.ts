import type { LocalAdmin } from "@fairlead/control-plane/admin";
import type { LocalOperations } from "@fairlead/control-plane/operations";
import type { RunningServer } from "@fairlead/control-plane/server";
import type { StopWatch } from "@fairlead/control-plane/stop-watch";
import { systemClock } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import { CliError, UsageError } from "../cli-error.ts";
import type { Environment } from "../config.ts";

/** The control plane, loaded lazily because it is large. */
export interface ControlPlane {
  startServer(): Promise<RunningServer>;
  /** Limits the shutdown time of this process, which must run nothing but the server. */
  watchStop(): Promise<StopWatch>;
  openLocalAdmin(): Promise<LocalAdmin>;
  /** @param use its errors are explained like start errors. */
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
    watchStop: async () => {
      const { startStopWatch, stopMsOf } = await import("@fairlead/control-plane/stop-watch");
      return startStopWatch({ stopMs: stopMsOf(config.server), clock: systemClock });
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
 * Errors that the operator can fix become a `CliError`; others pass unchanged. Recognized by shape, because the classes are in
 * the lazily loaded part.
 */
export function explain(error: unknown, configFile: string | undefined): unknown {
  const start = startErrorSchema.safeParse(error);
  if (start.success) return new CliError(start.data.message, { cause: error });
  const wrong = mistakesSchema.safeParse(error);
  if (!wrong.success) return error;
  const lines = wrong.data.mistakes.map(({ path, message }) => `  ${path}: ${message}`);
  return new UsageError(
    [`Invalid configuration. Fix the following in ${configFile ?? "the environment"}:`, ...lines].join("\n"),
  );
}
