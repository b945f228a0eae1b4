import type { LocalAdmin } from "@fairlead/control-plane/admin";
import type { LocalOperations } from "@fairlead/control-plane/operations";
import type { Context } from "./context.ts";

/** The options of commands that work through the server's data folder, on its own machine. */
export interface LocalOptions {
  readonly config?: string;
  readonly json?: boolean;
}

/** Administration without a session: whoever can read the data folder may (design §5). */
export async function withLocalAdmin<T>(
  { loadControlPlane, env }: Pick<Context, "loadControlPlane" | "env">,
  { config }: LocalOptions,
  use: (admin: LocalAdmin) => Promise<T>,
): Promise<T> {
  const admin = await (await loadControlPlane({ configFile: config, env })).openLocalAdmin();
  try {
    return await use(admin);
  } finally {
    await admin.close();
  }
}

/** Work on the installation itself, from its own machine. */
export async function withOperations<T>(
  { loadControlPlane, env }: Pick<Context, "loadControlPlane" | "env">,
  { config }: LocalOptions,
  use: (operations: LocalOperations) => Promise<T>,
): Promise<T> {
  return (await loadControlPlane({ configFile: config, env })).withOperations(use);
}
