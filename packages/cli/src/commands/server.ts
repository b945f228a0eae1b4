import type { Command } from "commander";
import type { Context } from "../context.ts";

interface Options {
  readonly config?: string;
  readonly json?: boolean;
}

export function addServerCommand(program: Command, context: Context): void {
  program
    .command("server")
    .description("run the control plane: the platform host and the inference host")
    .option("--config <file>", "YAML configuration; the environment alone will do as well")
    .option("--json", "print the two addresses as JSON once both hosts listen")
    .addHelpText("after", "\nExamples:\n  fairlead server\n  fairlead server --config /etc/fairlead/config.yaml")
    .action((options: Options) => runServer(context, options));
}

async function runServer({ terminal, env, loadControlPlane }: Context, { config, json }: Options): Promise<void> {
  const stop = Promise.withResolvers<void>();
  let asked = false;
  // Listening from the first moment: a signal during start-up must not cut a migration short.
  const release = terminal.onInterrupt(() => {
    if (asked) terminal.exitNow(1);
    asked = true;
    stop.resolve();
  });
  try {
    const controlPlane = await loadControlPlane({ configFile: config, env });
    const server = await controlPlane.startServer();
    const { platformUrl, inferenceUrl, setUpUrl } = server;
    if (json) terminal.out(`${JSON.stringify({ platformUrl, inferenceUrl, setUpUrl })}\n`);
    else {
      terminal.note(`platform host ${platformUrl}, inference host ${inferenceUrl}`);
      if (setUpUrl !== null) terminal.note(`first administrator: make the account at ${setUpUrl} (24 hours, one use)`);
    }
    await stop.promise;
    await server.close();
  } finally {
    release();
  }
}
