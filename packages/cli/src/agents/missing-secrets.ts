import { CliError } from "../cli-error.ts";
import { Refused } from "../http-client.ts";

/** Does what an agent may lack secrets for. @throws CliError that names the commands which set them */
export async function tellingMissingSecrets<T>(agentId: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof Refused) || error.missingSecrets.length === 0) throw error;
    const commands = error.missingSecrets.map((name) => `\n  fairlead agent secret put ${agentId} ${name}`);
    const how = "Set each, by standard input or with --from-file FILE:";
    throw new CliError(`${error.message}\n${how}${commands.join("")}`, { cause: error });
  }
}
