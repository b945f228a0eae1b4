import { BUILD, versionLine } from "@fairlead/protocol/build-info";
import { systemClock } from "@fairlead/protocol/clock";
import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import { Command, CommanderError } from "commander";
import { type Environment, type Flags, processEnvironment, readConfig } from "./config.ts";
import { runDaemon } from "./daemon.ts";
import { doctorText, examine, isWell } from "./doctor/doctor.ts";
import { weighBuffersWithHeap } from "./garbage-collection.ts";
import { nodeHttpClient } from "./link/http-client.ts";
import { createLog, LOG_LEVELS, reasonOf } from "./log.ts";
import { purgedText, purgeNode } from "./purge-node.ts";
import { DockerRuntime } from "./runtime/docker-runtime.ts";
import { EXIT, StartError } from "./start-error.ts";
import { diskFiles } from "./state/files.ts";
import { readStatus, statusText } from "./status.ts";
import { checkState } from "./update/check-state.ts";
import { DAEMON_VERSION } from "./version.ts";

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

const RUN_HELP = `
Examples:
  fairlead-daemon run --state-dir /var/lib/fairlead-daemon --bootstrap-token-file ./token   the first start: enrols this machine
  fairlead-daemon run --state-dir /var/lib/fairlead-daemon                                  every later start

Every flag may come from the environment: FAIRLEAD_DAEMON_STATE_DIR, FAIRLEAD_DAEMON_RUNTIME_DIR,
FAIRLEAD_DAEMON_BOOTSTRAP_TOKEN_FILE, FAIRLEAD_DAEMON_DOCKER_SOCKET, FAIRLEAD_DAEMON_LOG_LEVEL, FAIRLEAD_DAEMON_INSECURE. Under systemd the token may be the
credential "bootstrap-token". FAIRLEAD_DAEMON_TRIAL_SECONDS (300) is how long a new version has to prove itself. Stopping the daemon leaves its workloads running.

Exit codes: 0 stopped; 1 fault; 2 wrong call or not enrolled; 3 another daemon runs on the state folder;
5 the platform refuses this node for good: get a fresh bootstrap token; 6 another version takes over.`;

const DOCTOR_HELP = `
Looks at the system, its architecture, systemd, Docker, disk space, where opened secrets rest, the platform host, the clock
and GPUs, and changes nothing. Exit codes: 0 where the daemon can work; 1 where something must be put right first.

Examples:
  fairlead-daemon doctor --platform-url https://fairlead.example.org
  fairlead-daemon doctor --bootstrap-token-file ./token --json`;

const CHECK_HELP = `
A daemon asks this of a newer version before that one takes over; so can you, of any version beside it.

Example:
  /opt/fairlead-daemon/versions/1.3.0/bin/fairlead-daemon check`;

const VERSION_HELP = `
Example:
  fairlead-daemon version --json`;

/** Where the unit keeps it. */
const USUAL_FOLDERS: Environment = { STATE_DIRECTORY: "/var/lib/fairlead-daemon" };

const STATUS_HELP = `
Example:
  fairlead-daemon status --state-dir /var/lib/fairlead-daemon --json`;

const PURGE_HELP = `
Its data is gone with its volumes. What somebody else uses stays, and is named.

Example:
  systemctl stop fairlead-daemon && fairlead-daemon purge`;

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
    .description("Runs this machine's engine and agents for a Fairlead platform.")
    .version(versionLine(BUILD))
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
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--json", "print JSON")
    .addHelpText("after", STATUS_HELP)
    .action(async (flags: Flags & { json?: boolean }) => {
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...processEnvironment() });
      const status = await readStatus(config, new DockerRuntime(config.dockerSocket));
      process.stdout.write(`${flags.json ? JSON.stringify(status) : statusText(status)}\n`);
    });
  addPurge(program, onCode);
  addDoctor(program, onCode);
  addCheck(program);
  program
    .command("version")
    .description("show the version of this program and of what it runs on")
    .option("--json", "print JSON")
    .addHelpText("after", VERSION_HELP)
    .action(({ json }: { json?: boolean }) => {
      const version = { daemon: DAEMON_VERSION, protocols: PROTOCOL_VERSIONS, node: process.versions.node };
      const text = `fairlead-daemon ${DAEMON_VERSION}, daemon link ${PROTOCOL_VERSIONS.join(", ")}, Node.js ${version.node}`;
      process.stdout.write(`${json ? JSON.stringify(version) : text}\n`);
    });
  for (const command of program.commands) command.exitOverride();
  return program;
}

function addPurge(program: Command, onCode: (code: number) => void): void {
  program
    .command("purge")
    .description("remove this node's containers, volumes and images from this machine; its daemon must be stopped")
    .option("--state-dir <dir>", "folder of this node's identity and desired state")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .addHelpText("after", PURGE_HELP)
    .action(async (flags: Flags) => {
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...processEnvironment() });
      const purged = await purgeNode(config, new DockerRuntime(config.dockerSocket));
      process.stdout.write(`${purgedText(purged)}\n`);
      onCode(EXIT.ok);
    });
}

type DoctorFlags = Flags & { readonly platformUrl?: string; readonly json?: boolean };

function addDoctor(program: Command, onCode: (code: number) => void): void {
  program
    .command("doctor")
    .description("check whether this machine can run the daemon")
    .option("--state-dir <dir>", "folder of this node's identity and desired state")
    .option("--runtime-dir <dir>", "folder of opened secrets (default: /run/fairlead-daemon)")
    .option("--bootstrap-token-file <file>", "a bootstrap token, which names the platform host")
    .option("--platform-url <url>", "the platform host")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--json", "print JSON")
    .addHelpText("after", DOCTOR_HELP)
    .action(async ({ platformUrl, json, ...flags }: DoctorFlags) => {
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...processEnvironment() });
      if (platformUrl !== undefined && !(URL.canParse(platformUrl) && /^https?:/.test(platformUrl)))
        throw new StartError(EXIT.usage, "--platform-url: must be an http or https address");
      const runtime = new DockerRuntime(config.dockerSocket);
      const checks = await examine({
        config,
        platformUrl: platformUrl ?? null,
        runtime,
        http: nodeHttpClient,
        clock: systemClock,
      });
      process.stdout.write(`${json ? JSON.stringify({ ok: isWell(checks), checks }) : doctorText(checks)}\n`);
      onCode(isWell(checks) ? EXIT.ok : EXIT.fault);
    });
}

function addCheck(program: Command): void {
  program
    .command("check")
    .description("check whether this version can take over what lies in the state folder; changes nothing")
    .option("--state-dir <dir>", "folder of this node's identity and desired state")
    .option("--runtime-dir <dir>", "folder of opened secrets (default: /run/fairlead-daemon)")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--log-level <level>", `one of ${LOG_LEVELS.join(", ")}`)
    .option("--insecure", "as of `run`")
    .addHelpText("after", CHECK_HELP)
    .action(async (flags: Flags) => {
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...processEnvironment() });
      process.stdout.write(`${await checkState(diskFiles, config)}\n`);
    });
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
