import type { LocalAdmin } from "@fairlead/control-plane/admin";
import type { LocalOperations } from "@fairlead/control-plane/operations";
import type { Environment } from "../config.ts";
import type { CommandContext } from "../context.ts";

/** Options of commands that use the server's data folder, on its machine. */
export interface LocalOptions {
  readonly config?: string;
  readonly json?: boolean;
}

export const CONFIG_OPTION = ["--config <file>", "server configuration file (default: $FAIRLEAD_CONFIG)"] as const;

/** `--config`, else FAIRLEAD_CONFIG. */
export function configFileOf({ config }: Pick<LocalOptions, "config">, env: Environment): string | undefined {
  return config ?? (env["FAIRLEAD_CONFIG"] || undefined);
}

/** Administration without a session, for users who can read the data folder. */
export async function withLocalAdmin<T>(
  { loadControlPlane, env }: Pick<CommandContext, "loadControlPlane" | "env">,
  options: LocalOptions,
  use: (admin: LocalAdmin) => Promise<T>,
): Promise<T> {
  const admin = await (await loadControlPlane({ configFile: configFileOf(options, env), env })).openLocalAdmin();
  try {
    return await use(admin);
  } finally {
    await admin.close();
  }
}

/** Operations on the installation, from the server's machine. */
export async function withOperations<T>(
  { loadControlPlane, env }: Pick<CommandContext, "loadControlPlane" | "env">,
  options: LocalOptions,
  use: (operations: LocalOperations) => Promise<T>,
): Promise<T> {
  return (await loadControlPlane({ configFile: configFileOf(options, env), env })).withOperations(use);
}
