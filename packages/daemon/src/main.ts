import { Command, CommanderError } from "commander";
import { type Flags, processEnvironment, readConfig } from "./config.ts";
import { runDaemon } from "./daemon.ts";
import { weighBuffersWithHeap } from "./garbage-collection.ts";
import { createLog, LOG_LEVELS, reasonOf } from "./log.ts";
import { EXIT, StartError } from "./start-error.ts";
import { readStatus, statusText } from "./status.ts";
import { DAEMON_VERSION } from "./version.ts";

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

const RUN_HELP = `
Examples:
  fairlead-daemon run --state-dir /var/lib/fairlead-daemon --bootstrap-token-file ./token   the first start: enrols this machine
  fairlead-daemon run --state-dir /var/lib/fairlead-daemon                                  every later start

Every flag may come from the environment: FAIRLEAD_DAEMON_STATE_DIR, FAIRLEAD_DAEMON_RUNTIME_DIR,
FAIRLEAD_DAEMON_BOOTSTRAP_TOKEN_FILE, FAIRLEAD_DAEMON_DOCKER_SOCKET, FAIRLEAD_DAEMON_LOG_LEVEL, FAIRLEAD_DAEMON_INSECURE. Under systemd the token may be the
credential "bootstrap-token". Stopping the daemon leaves its workloads running.

Exit codes: 0 stopped; 1 fault; 2 wrong call or not enrolled; 3 another daemon runs on the state folder;
5 the platform refuses this node for good: get a fresh bootstrap token.`;

const STATUS_HELP = `
Example:
  fairlead-daemon status --state-dir /var/lib/fairlead-daemon --json`;

/** @param argv the arguments after the program's name. @returns the exit code. */
export async function main(argv: string[]): Promise<number> {
  let code: number = EXIT.ok;
  const program = createProgram((result) => {
    code = result;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    process.stderr.write(`fairlead-daemon: ${reasonOf(error)}\n`);
    return error instanceof StartError ? error.exitCode : EXIT.fault;
  }
}

function createProgram(onCode: (code: number) => void): Command {
  const program = new Command("fairlead-daemon")
    .description("Runs this machine's engine workloads for a Fairlead platform.")
    .version(DAEMON_VERSION)
    .exitOverride();
  program
    .command("run")
    .description("keep this node's workloads running, and report them to the platform")
    .option("--state-dir <dir>", "folder of this node's identity and desired state")
    .option("--runtime-dir <dir>", "folder of opened secrets, on a tmpfs (default: /run/fairlead-daemon)")
    .option("--bootstrap-token-file <file>", "file with the bootstrap token, for the first start")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--log-level <level>", `one of ${LOG_LEVELS.join(", ")} (default: info)`)
    .option("--insecure", "allow plain http to a platform host on another machine")
    .addHelpText("after", RUN_HELP)
    .action(async (flags: Flags) => onCode(await run(flags)));
  program
    .command("status")
    .description("show which node this machine is, and whether its daemon runs")
    .option("--state-dir <dir>", "folder of this node's identity and desired state")
    .option("--json", "print JSON")
    .addHelpText("after", STATUS_HELP)
    .action(async (flags: Flags & { json?: boolean }) => {
      const status = await readStatus(readConfig(flags, processEnvironment()));
      process.stdout.write(`${flags.json ? JSON.stringify(status) : statusText(status)}\n`);
    });
  for (const command of program.commands) command.exitOverride();
  return program;
}

async function run(flags: Flags): Promise<number> {
  const config = readConfig(flags, processEnvironment());
  weighBuffersWithHeap();
  const log = createLog(config.logLevel);
  const stopping = new AbortController();
  const stop = (signal: NodeJS.Signals): void => {
    log.info({ signal }, "stopping");
    stopping.abort();
    // The next signal ends the process at once.
    forget();
  };
  const forget = (): void => {
    for (const signal of STOP_SIGNALS) process.off(signal, stop);
  };
  for (const signal of STOP_SIGNALS) process.on(signal, stop);
  try {
    return await runDaemon(config, { log, signal: stopping.signal });
  } finally {
    forget();
  }
}
