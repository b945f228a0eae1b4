import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { formatBootstrapToken } from "@fairlead/protocol/enrollment";
import { renderInstallScript } from "../../packages/control-plane/src/fleet/builds/install-script.ts";

/** A machine as `install.sh` sees it: folders of its own by a mount namespace, a stand-in for systemctl, a platform that serves a build. */

const SCRIPT = new URL("../../scripts/install/install.sh", import.meta.url).pathname;
const ROOT = new URL("../..", import.meta.url).pathname;
export const VERSION = "1.2.3";

/** What the script may write to, and nothing of it is the real machine's. */
const OWN_FOLDERS = ["opt", "etc", "usr/local/bin", "var/lib", "run"];
/** What programs need of /etc. */
const SETTINGS = ["os-release", "passwd", "group", "ld.so.cache", "alternatives"];

const SYSTEMCTL = `#!/bin/sh
[ "$1" != --version ] || { echo "systemd 252 (252.1)"; exit 0; }
echo "systemctl $*" >>/opt/.calls
case "$*" in
"is-active --quiet fairlead-daemon") [ -e /run/.active ] ;;
"is-failed --quiet fairlead-daemon") [ -e /run/.failed ] ;;
"restart fairlead-daemon")
  [ ! -e /run/.refuses ] || { touch /run/.failed; exit 1; }
  touch /run/.active
  mkdir -p /var/lib/fairlead-daemon
  echo '{}' >/var/lib/fairlead-daemon/identity.json
  ;;
"disable --now --quiet fairlead-daemon") rm -f /run/.active ;;
"show fairlead-daemon --property=StatusText --value") [ ! -e /run/.active ] || echo "Connected: 1 workload" ;;
"show fairlead-daemon "*) cat /run/.code 2>/dev/null || echo 0 ;;
esac
`;

/** Enrolled from its first start on. */
const DAEMON = `#!/bin/sh
case "$1" in
--version) echo "${VERSION} (c0ffee)" ;;
status)
  [ -e /var/lib/fairlead-daemon/identity.json ] && enrolled=true || enrolled=false
  case "$*" in *--json*) echo "{\\"enrolled\\":$enrolled}" ;; *) echo "node       nod_1" ;; esac
  ;;
purge) echo "purge $*" >>/opt/.calls ;;
esac
`;

export interface ScriptEnd {
  readonly code: number;
  readonly output: string;
}

export class InstallMachine {
  readonly dir: string = mkdtempSync(join(tmpdir(), "fairlead-install-"));
  readonly #servers: Server[] = [];
  /** What the platform host was asked for. */
  readonly asked: string[] = [];
  /** What its Docker pulls images through. */
  dockerProxy = "";
  url = "";
  sha256 = "";
  /** What is served for the tar. */
  archive: Buffer = Buffer.alloc(0);

  static async start(): Promise<InstallMachine> {
    const machine = new InstallMachine();
    for (const folder of OWN_FOLDERS) mkdirSync(join(machine.dir, folder), { recursive: true });
    mkdirSync(machine.path("etc/systemd/system"), { recursive: true });
    for (const name of SETTINGS) execFileSync("cp", ["-a", `/etc/${name}`, machine.path(`etc/${name}`)]);
    machine.write("bin/systemctl", SYSTEMCTL, 0o755);
    machine.write("bin/journalctl", "#!/bin/sh\necho 'said the daemon'\n", 0o755);
    mkdirSync(machine.path("run/systemd/system"), { recursive: true });
    machine.archive = machine.#pack();
    machine.sha256 = createHash("sha256").update(machine.archive).digest("hex");
    machine.url = await machine.#serve({ port: 0, host: "127.0.0.1" });
    await machine.startDocker();
    return machine;
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  write(name: string, content: string, mode = 0o644): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), content);
    chmodSync(this.path(name), mode);
  }

  has(name: string): boolean {
    return existsSync(this.path(name));
  }

  read(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }

  /** What systemctl and the daemon were asked to do since the last look. */
  calls(): string[] {
    if (!this.has("opt/.calls")) return [];
    const calls = this.read("opt/.calls").trim().split("\n");
    rmSync(this.path("opt/.calls"));
    return calls;
  }

  token(build?: { version: string; sha256: { x64: string } }, url = this.url): string {
    const secret = "s".repeat(43);
    return formatBootstrapToken({ url, nodeId: "nod_1", secret, ...(build === undefined ? {} : { build }) });
  }

  /** As under `curl | sh`: the script comes by standard input, and no terminal is there to ask. */
  async run(
    args: readonly string[],
    options: { token?: string; publicUrl?: string; offered?: boolean; env?: Readonly<Record<string, string>> } = {},
  ): Promise<ScriptEnd> {
    const { token, publicUrl = this.url, offered = true } = options;
    const build = offered ? { version: VERSION, sha256: {} } : null;
    const script = renderInstallScript(readFileSync(SCRIPT, "utf8"), { publicUrl, build });
    const binds = OWN_FOLDERS.map((folder) => `mount --bind ${this.dir}/${folder} /${folder}`);
    const inside = [
      ...binds,
      `PATH=${this.dir}/bin:/usr/bin:/bin:/usr/sbin:/sbin`,
      'exec setsid -w sh -s -- "$@"',
    ].join(" && ");
    const env = {
      PATH: process.env["PATH"],
      ...options.env,
      ...(token === undefined ? {} : { FAIRLEAD_BOOTSTRAP_TOKEN: token }),
    };
    const child = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-ec", inside, "sh", ...args], {
      env,
    });
    child.stdin.end(script);
    const ended = new Promise<number>((resolve) => child.on("close", (code) => resolve(code ?? -1)));
    const [out, error, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { code, output: out + error };
  }

  async startDocker(): Promise<void> {
    await this.#serve({ path: this.path("run/docker.sock") });
  }

  async stopDocker(): Promise<void> {
    const docker = this.#servers.pop();
    await new Promise((resolve) => docker?.close(resolve));
  }

  async remove(): Promise<void> {
    for (const server of this.#servers) await new Promise((resolve) => server.close(resolve));
    rmSync(this.dir, { recursive: true });
  }

  #pack(): Buffer {
    this.write("build/bin/fairlead-daemon", DAEMON, 0o755);
    this.write("build/systemd/fairlead-daemon.service", readFileSync(`${ROOT}systemd/fairlead-daemon.service`, "utf8"));
    return execFileSync("tar", ["-czf", "-", "-C", this.path("build"), "."]);
  }

  async #serve(where: { port: number; host: string } | { path: string }): Promise<string> {
    const file = `fairlead-daemon-${VERSION}-linux-x64.tar.gz`;
    const server = createServer((request, response) => {
      this.asked.push(request.url ?? "");
      // As a reverse proxy removes it.
      request.url = (request.url ?? "").replace(/^\/fairlead\//, "/");
      if (request.url === "/healthz") response.end("{}");
      else if (request.url === "/info") response.end(`{"HttpsProxy":"${this.dockerProxy}"}`);
      else if (request.url === "/version") response.end('{"Version":"20.10.24","ApiVersion":"1.41"}');
      else if (request.url === `/v1/daemon-builds/${file}`) response.end(this.archive);
      else if (request.url === `/v1/daemon-builds/${file}.sha256`) response.end(`${this.sha256}  ${file}\n`);
      else response.writeHead(404).end("{}");
    });
    await new Promise<void>((resolve) => server.listen(where, resolve));
    this.#servers.push(server);
    const address = server.address() as AddressInfo | string;
    return typeof address === "string" ? address : `http://127.0.0.1:${address.port}`;
  }
}
