import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalAdmin, openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { twoFreePorts } from "./ports.ts";
import { Program } from "./program.ts";
import { waitFor } from "./wait-for.ts";

const SERVER = new URL("../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const READY_MS = 30_000;

interface ServerSettings extends Readonly<Record<string, unknown>> {
  readonly server?: Readonly<Record<string, unknown>>;
}

/** `fairlead server` on an empty data folder, as an operator starts it for the first time. */
export class StartedServer {
  readonly url: string;
  /** Of the inference host. */
  readonly modelsUrl: string;
  readonly #dir: string;
  readonly #configFile: string;
  readonly #program: Program;

  private constructor(urls: { readonly url: string; readonly modelsUrl: string }, dir: string, program: Program) {
    this.url = urls.url;
    this.modelsUrl = urls.modelsUrl;
    this.#dir = dir;
    this.#configFile = join(dir, "config.yaml");
    this.#program = program;
  }

  /** @param settings on top of what a server of its own ports needs. @param execArgv for the server's Node. */
  static async start(settings: ServerSettings = {}, execArgv: readonly string[] = []): Promise<StartedServer> {
    const started = await StartedServer.launch(settings, execArgv);
    await started.ready();
    return started;
  }

  /** Without waiting for it to be ready. @param prepare what it finds in its data folder. */
  static async launch(
    settings: ServerSettings,
    execArgv: readonly string[],
    prepare: (dataDir: string) => void = () => undefined,
  ): Promise<StartedServer> {
    const dir = mkdtempSync(join(tmpdir(), "fairlead-server-"));
    const [platform, inference] = await twoFreePorts();
    const url = `http://127.0.0.1:${platform}`;
    const { server: more, ...others } = settings;
    const server = { platform: { port: platform }, inference: { port: inference }, publicUrl: url, ...more };
    const configFile = join(dir, "config.yaml");
    const dataDir = join(dir, "data");
    prepare(dataDir);
    // JSON is YAML.
    writeFileSync(configFile, JSON.stringify({ dataDir, server, ...others }));
    const program = new Program(
      [process.execPath, ...execArgv, SERVER, "server", "--config", configFile],
      join(dir, "log"),
    );
    return new StartedServer({ url, modelsUrl: `http://127.0.0.1:${inference}` }, dir, program);
  }

  /** @throws Error with its last words if it ends before. */
  async ready(): Promise<void> {
    const program = this.#program;
    await waitFor("the server", READY_MS, async () => !program.running || (await fetch(`${this.url}/readyz`)).ok);
    if (!program.running) throw new Error(`the server ended at once:\n${program.lastLines()}`);
  }

  /** What it has printed on the terminal and logged. */
  get log(): string {
    return this.#program.log;
  }

  get pid(): number {
    return this.#program.pid;
  }

  get running(): boolean {
    return this.#program.running;
  }

  /** Null while it runs, and after a signal has ended it. */
  get exitCode(): number | null {
    return this.#program.exitCode;
  }

  get dataDir(): string {
    return join(this.#dir, "data");
  }

  /** Asks it to end. @returns whether it ended within this time; else it is killed. */
  async stopWithin(ms: number): Promise<boolean> {
    const timer = setTimeout(() => void this.#program.kill(), ms);
    await this.#program.stop();
    clearTimeout(timer);
    return this.#program.exitCode !== null;
  }

  /** Of what it has printed. */
  get logBytes(): number {
    return statSync(join(this.#dir, "log")).size;
  }

  /** Administration as the command line does it. */
  async asOperator<T>(work: (admin: LocalAdmin) => Promise<T>): Promise<T> {
    const admin = await openLocalAdmin(loadConfig({ file: this.#configFile, env: {} }));
    try {
      return await work(admin);
    } finally {
      await admin.close();
    }
  }

  /** Ends it without a word of warning, as a crash does. */
  async kill(): Promise<void> {
    await this.#program.kill();
  }

  async remove(): Promise<void> {
    await this.#program.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
