import { parseEnv } from "node:util";
import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import { BUILD, versionLine } from "@fairlead/protocol/values/build-info";
import { systemClock } from "@fairlead/protocol/values/clock";
import { Command, CommanderError } from "commander";
import { runDaemon } from "./daemon.ts";
import { doctorText, examineMachine, isWell } from "./doctor/doctor.ts";
import { createHttpClient } from "./link/http-client.ts";
import { trustFile } from "./link/trust-file.ts";
import { type DaemonEnvironment, daemonEnvironment, type Flags, readConfig } from "./process/config.ts";
import { weighBuffersWithBallast } from "./process/garbage-collection.ts";
import { createDaemonLog, DAEMON_LOG_LEVELS, reasonOf } from "./process/log.ts";
import { DaemonStartError, EXIT } from "./process/start-error.ts";
import { DAEMON_VERSION } from "./process/version.ts";
import { purgedText, purgeNode } from "./purge-node.ts";
import { DockerRuntime } from "./runtime/docker/docker-runtime.ts";
import { DEFAULT_WORKLOAD_SUBNETS } from "./runtime/subnets.ts";
import { diskFiles } from "./state/files.ts";
import { readStatus, statusText } from "./status.ts";
import { checkState } from "./update/check-state.ts";

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

const RUN_HELP = `
Examples:
  fairlead-daemon run --state-dir /var/lib/fairlead-daemon --bootstrap-token-file ./token   first start: enrols this machine
  fairlead-daemon run --state-dir /var/lib/fairlead-daemon                                  later starts

Every flag can also be set in the environment: FAIRLEAD_DAEMON_STATE_DIR, FAIRLEAD_DAEMON_RUNTIME_DIR,
FAIRLEAD_DAEMON_BOOTSTRAP_TOKEN_FILE, FAIRLEAD_DAEMON_DOCKER_SOCKET, FAIRLEAD_DAEMON_WORKLOAD_SUBNETS, FAIRLEAD_DAEMON_LOG_LEVEL, FAIRLEAD_DAEMON_INSECURE, FAIRLEAD_DAEMON_CA_FILE. Under systemd, the token can be the
credential "bootstrap-token". HTTPS_PROXY, HTTP_PROXY and NO_PROXY are supported in upper and lower case. FAIRLEAD_DAEMON_TRIAL_SECONDS (300) is the length of a new version's trial. Workloads keep running when the daemon stops.

Exit codes: 0 stopped; 1 error; 2 invalid command line or not enrolled; 3 another daemon uses the state folder;
5 the platform rejects this node permanently: get a new bootstrap token; 6 another version takes over.`;

const DOCTOR_HELP = `
Checks the system, its architecture, systemd, Docker, the packet filter, disk space, the folder of decrypted secrets, the proxy, the platform host,
the clock and GPUs. Changes nothing. Reads /etc/fairlead/daemon.env like the service; the environment takes precedence. Exit codes: 0 the daemon can run; 1 something must be fixed first.

Examples:
  fairlead-daemon doctor --platform-url https://fairlead.example.org
  fairlead-daemon doctor --bootstrap-token-file ./token --json`;

/** The unit's EnvironmentFile. */
const SERVICE_ENVIRONMENT = "/etc/fairlead/daemon.env";

const CHECK_HELP = `
Before an update, the daemon runs this check with the new version. You can run it with any installed version.

Example:
  /opt/fairlead-daemon/versions/1.3.0/bin/fairlead-daemon check`;

const VERSION_HELP = `
Example:
  fairlead-daemon version --json`;

/** Where the unit keeps it. */
const USUAL_FOLDERS: DaemonEnvironment = { STATE_DIRECTORY: "/var/lib/fairlead-daemon" };

const STATUS_HELP = `
Example:
  fairlead-daemon status --state-dir /var/lib/fairlead-daemon --json`;

const PURGE_HELP = `
Deletes the node's data with its volumes. Volumes and images that others use are kept and listed.

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
    return error instanceof DaemonStartError ? error.exitCode : EXIT.fault;
  }
}

function createProgram(onCode: (code: number) => void): Command {
  const program = new Command("fairlead-daemon")
    .description("Runs the engine and agents of a Fairlead node on this machine.")
    .version(versionLine(BUILD))
    .exitOverride();
  program
    .command("run")
    .description("run this node's workloads and report them to the platform")
    .option("--state-dir <dir>", "folder with this node's identity and desired state")
    .option("--runtime-dir <dir>", "folder for decrypted secrets, on a tmpfs (default: /run/fairlead-daemon)")
    .option("--bootstrap-token-file <file>", "file with the bootstrap token, required for the first start")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--workload-subnets <subnet>", `address pool for workload networks (default: ${DEFAULT_WORKLOAD_SUBNETS})`)
    .option("--log-level <level>", `one of ${DAEMON_LOG_LEVELS.join(", ")} (default: info)`)
    .option("--insecure", "allow plain HTTP to a platform host on another machine")
    .option("--ca-file <file>", "PEM file with additional certificate authorities")
    .addHelpText("after", RUN_HELP)
    .action(async (flags: Flags) => onCode(await run(flags)));
  program
    .command("status")
    .description("show this machine's node and whether its daemon is running")
    .option("--state-dir <dir>", "folder with this node's identity and desired state")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--json", "print JSON")
    .addHelpText("after", STATUS_HELP)
    .action(async (flags: Flags & { json?: boolean }) => {
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...daemonEnvironment() });
      const status = await readStatus(config, new DockerRuntime(config.dockerSocket));
      process.stdout.write(`${flags.json ? JSON.stringify(status) : statusText(status)}\n`);
    });
  addPurge(program, onCode);
  addDoctor(program, onCode);
  addCheck(program);
  program
    .command("version")
    .description("show the versions of this program and its runtime")
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
    .description(
      "remove this node's containers, networks, volumes and images from this machine; the daemon must be stopped",
    )
    .option("--state-dir <dir>", "folder with this node's identity and desired state")
    .option("--runtime-dir <dir>", "folder for decrypted secrets (default: /run/fairlead-daemon)")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .addHelpText("after", PURGE_HELP)
    .action(async (flags: Flags) => {
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...daemonEnvironment() });
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
    .option("--state-dir <dir>", "folder with this node's identity and desired state")
    .option("--runtime-dir <dir>", "folder for decrypted secrets (default: /run/fairlead-daemon)")
    .option("--bootstrap-token-file <file>", "file with a bootstrap token, which contains the platform's URL")
    .option("--platform-url <url>", "URL of the platform host")
    .option("--ca-file <file>", "PEM file with additional certificate authorities")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--json", "print JSON")
    .addHelpText("after", DOCTOR_HELP)
    .action(async ({ platformUrl, json, ...flags }: DoctorFlags) => {
      const service = await readEnvironmentFile(SERVICE_ENVIRONMENT);
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...service, ...daemonEnvironment() });
      if (platformUrl !== undefined && !(URL.canParse(platformUrl) && /^https?:/.test(platformUrl)))
        throw new DaemonStartError(EXIT.usage, "--platform-url: must be an HTTP or HTTPS URL");
      trustFile(config.caFile);
      const runtime = new DockerRuntime(config.dockerSocket);
      const checks = await examineMachine({
        config,
        platformUrl: platformUrl ?? null,
        runtime,
        http: createHttpClient(config.proxies),
        clock: systemClock,
      });
      process.stdout.write(`${json ? JSON.stringify({ ok: isWell(checks), checks }) : doctorText(checks)}\n`);
      onCode(isWell(checks) ? EXIT.ok : EXIT.fault);
    });
}

/** Empty if the file is missing or unreadable. */
async function readEnvironmentFile(path: string): Promise<DaemonEnvironment> {
  const text = await diskFiles.read(path).catch(() => null);
  return text === null ? {} : parseEnv(text);
}

function addCheck(program: Command): void {
  program
    .command("check")
    .description("check whether this version can use the existing state folder; changes nothing")
    .option("--state-dir <dir>", "folder with this node's identity and desired state")
    .option("--runtime-dir <dir>", "folder for decrypted secrets (default: /run/fairlead-daemon)")
    .option("--docker-socket <path>", "socket of the container engine (default: /var/run/docker.sock)")
    .option("--log-level <level>", `one of ${DAEMON_LOG_LEVELS.join(", ")}`)
    .option("--insecure", "same as for `run`")
    .addHelpText("after", CHECK_HELP)
    .action(async (flags: Flags) => {
      const config = readConfig(flags, { ...USUAL_FOLDERS, ...daemonEnvironment() });
      process.stdout.write(`${await checkState(diskFiles, config)}\n`);
    });
}

async function run(flags: Flags): Promise<number> {
  const config = readConfig(flags, daemonEnvironment());
  weighBuffersWithBallast();
  const log = createDaemonLog(config.logLevel);
  const stopping = new AbortController();
  const stop = (signal: NodeJS.Signals): void => {
    log.info({ signal }, "stopping");
    stopping.abort();
    // A second signal ends the process immediately.
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
