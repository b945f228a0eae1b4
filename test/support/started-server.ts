import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalAdmin, openLocalAdmin } from "../../packages/control-plane/src/admin/local-admin.ts";
import { loadConfig } from "../../packages/control-plane/src/config.ts";
import { twoFreePorts } from "./ports.ts";
import { Program } from "./program.ts";
import { waitFor } from "./wait-for.ts";

const SERVER = new URL("../../packages/cli/bin/fairlead.js", import.meta.url).pathname;
const READY_MS = 30_000;

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

  /** @param settings on top of what a server of its own ports needs. */
  static async start(settings: Readonly<Record<string, unknown>> = {}): Promise<StartedServer> {
    const dir = mkdtempSync(join(tmpdir(), "fairlead-server-"));
    const [platform, inference] = await twoFreePorts();
    const url = `http://127.0.0.1:${platform}`;
    const server = { platform: { port: platform }, inference: { port: inference }, publicUrl: url };
    const configFile = join(dir, "config.yaml");
    // JSON is YAML.
    writeFileSync(configFile, JSON.stringify({ dataDir: join(dir, "data"), server, ...settings }));
    const program = new Program([process.execPath, SERVER, "server", "--config", configFile], join(dir, "log"));
    const started = new StartedServer({ url, modelsUrl: `http://127.0.0.1:${inference}` }, dir, program);
    await waitFor("the server", READY_MS, async () => !program.running || (await fetch(`${url}/readyz`)).ok);
    if (!program.running) throw new Error(`the server ended at once:\n${program.lastLines()}`);
    return started;
  }

  /** What it has printed on the terminal and logged. */
  get log(): string {
    return this.#program.log;
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
