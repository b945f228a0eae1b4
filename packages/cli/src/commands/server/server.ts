import type { Command } from "commander";
import type { CommandContext } from "../../context.ts";
import { configFileOf } from "../../platform/local-admin.ts";

/** EX_SOFTWARE: the service manager restarts the server, which then reports the active one. */
const FENCED_EXIT = 70;

interface Options {
  readonly config?: string;
  readonly json?: boolean;
}

export function addServerCommand(program: Command, context: CommandContext): void {
  program
    .command("server")
    .description("run the control plane: the platform host and the inference host")
    .option(
      "--config <file>",
      "YAML configuration file (default: $FAIRLEAD_CONFIG); optional if settings are in the environment",
    )
    .option("--json", "print the URLs as JSON once both hosts are listening")
    .addHelpText("after", "\nExamples:\n  fairlead server\n  fairlead server --config /etc/fairlead/config.yaml")
    .action((options: Options) => runServer(context, options));
}

async function runServer({ terminal, env, loadControlPlane }: CommandContext, options: Options): Promise<void> {
  const stop = Promise.withResolvers<void>();
  let asked = false;
  // Registered first: a signal during start-up must not interrupt a migration.
  const release = terminal.onInterrupt(() => {
    if (asked) terminal.exitNow(1);
    asked = true;
    stop.resolve();
  });
  try {
    const controlPlane = await loadControlPlane({ configFile: configFileOf(options, env), env });
    const server = await controlPlane.startServer();
    const watch = await controlPlane.watchStop();
    const { platformUrl, inferenceUrl, setUpUrl } = server;
    if (options.json) terminal.out(`${JSON.stringify({ platformUrl, inferenceUrl, setUpUrl })}\n`);
    else {
      terminal.note(`platform host ${platformUrl}, inference host ${inferenceUrl}`);
      if (setUpUrl !== null)
        terminal.note(`create the first administrator account at ${setUpUrl} (single use, valid for 24 hours)`);
    }
    const isFenced = await Promise.race([stop.promise.then(() => false), server.fenced.then(() => true)]);
    if (isFenced) {
      terminal.note("another server has taken over this database");
      return terminal.exitNow(FENCED_EXIT);
    }
    watch.stopping();
    await server.close();
  } finally {
    release();
  }
}
