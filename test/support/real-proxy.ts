import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { twoFreePorts } from "./ports.ts";
import { Program } from "./program.ts";
import { waitFor } from "./wait-for.ts";

/** Debian's squid and tinyproxy, each with names that it alone can resolve. */

const USER = "proxy-user";
const PASSWORD = "p:ss/w%rd";
/** tinyproxy takes no others in its settings. */
const PLAIN_PASSWORD = "p.ss-w0rd";
const START_MS = 30_000;

export interface RealProxyOptions {
  /** Names that lead to 127.0.0.1. */
  readonly names: readonly string[];
  readonly withPassword: boolean;
}

export interface RealProxy {
  readonly url: string;
  /** With user and password, escaped as in an environment variable. */
  readonly fullUrl: string;
  /** What no output may show. */
  readonly secrets: readonly string[];
  /** `host:port` of connections that were asked for; with squid once they ended. */
  targets(): readonly string[];
  stop(): Promise<void>;
}

export const SQUID = "/usr/sbin/squid";
export const TINYPROXY = "/usr/bin/tinyproxy";

export function hasProgram(path: string): boolean {
  return existsSync(path);
}

export async function startSquid({ names, withPassword }: RealProxyOptions): Promise<RealProxy> {
  const dir = prepare(names);
  const [port] = await twoFreePorts();
  const log = join(dir, "access.log");
  const users = join(dir, "users");
  writeFileSync(users, `${USER}:${execFileSync("openssl", ["passwd", "-apr1", PASSWORD], { encoding: "utf8" })}`);
  const access = withPassword
    ? [
        `auth_param basic program /usr/lib/squid/basic_ncsa_auth ${users}`,
        "acl known proxy_auth REQUIRED",
        "http_access allow known",
      ]
    : ["http_access allow all"];
  const settings = [
    `http_port 127.0.0.1:${port}`,
    "pid_filename none",
    `access_log stdio:${log}`,
    `cache_log ${join(dir, "cache.log")}`,
    `coredump_dir ${dir}`,
    `hosts_file ${join(dir, "hosts")}`,
    "cache deny all",
    "cache_mem 8 MB",
    "visible_hostname proxy.test",
    "shutdown_lifetime 0 seconds",
    "pinger_enable off",
    ...access,
    "http_access deny all",
  ];
  writeFileSync(join(dir, "squid.conf"), `${settings.join("\n")}\n`);
  // A name of its own, or two of them would share memory.
  const program = new Program(
    [SQUID, "-N", "-n", `fairlead${port}`, "-f", join(dir, "squid.conf")],
    join(dir, "squid.out"),
  );
  return started(program, {
    dir,
    port,
    password: withPassword ? PASSWORD : null,
    targets: () => [...linesOf(log).matchAll(/ CONNECT (\S+) /g)].map(([, target = ""]) => target),
  });
}

export async function startTinyproxy({ names, withPassword }: RealProxyOptions): Promise<RealProxy> {
  const dir = prepare(names);
  const [port] = await twoFreePorts();
  const log = join(dir, "tinyproxy.log");
  const settings = [
    `Port ${port}`,
    "Listen 127.0.0.1",
    "Timeout 600",
    "MaxClients 50",
    `LogFile "${log}"`,
    "LogLevel Connect",
    ...(withPassword ? [`BasicAuth ${USER} ${PLAIN_PASSWORD}`] : []),
  ];
  const config = join(dir, "tinyproxy.conf");
  writeFileSync(config, `${settings.join("\n")}\n`);
  // It resolves by the system's hosts file, so it gets one of its own.
  const script = `mount --bind '${join(dir, "hosts")}' /etc/hosts && exec ${TINYPROXY} -d -c '${config}'`;
  const program = new Program(["unshare", "--mount", "sh", "-c", script], join(dir, "tinyproxy.out"));
  return started(program, {
    dir,
    port,
    password: withPassword ? PLAIN_PASSWORD : null,
    targets: () => [...linesOf(log).matchAll(/: CONNECT (\S+) /g)].map(([, target = ""]) => target),
  });
}

/** Whether this machine lets a program have a hosts file of its own. */
export function canMount(): boolean {
  try {
    execFileSync("unshare", ["--mount", "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A folder that squid can write to as the user that it becomes. */
function prepare(names: readonly string[]): string {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-proxy-"));
  chmodSync(dir, 0o777);
  writeFileSync(
    join(dir, "hosts"),
    ["127.0.0.1 localhost", ...names.map((name) => `127.0.0.1 ${name}`), ""].join("\n"),
  );
  return dir;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
  return true;
}

function linesOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

interface Starting {
  readonly dir: string;
  readonly port: number;
  readonly password: string | null;
  readonly targets: () => readonly string[];
}

async function started(program: Program, { dir, port, password, targets }: Starting): Promise<RealProxy> {
  const url = `http://127.0.0.1:${port}`;
  await waitFor("the proxy", START_MS, async () => {
    return !program.running || (await isListening(port));
  });
  if (!program.running) throw new Error(`the proxy ended at once:\n${program.lastLines()}`);
  const user = `${encodeURIComponent(USER)}:${encodeURIComponent(password ?? "")}`;
  const basic = Buffer.from(`${USER}:${password}`).toString("base64");
  return {
    url,
    fullUrl: password === null ? url : url.replace("//", `//${user}@`),
    secrets: password === null ? [] : [password, encodeURIComponent(password), basic],
    targets,
    stop: async () => {
      await program.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
