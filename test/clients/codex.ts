import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const CODEX = new URL("node_modules/.bin/codex", import.meta.url).pathname;

export interface CodexOptions {
  readonly key: string;
  /** Its `config.toml`. */
  readonly config: string;
}

/** One headless Codex with a home of its own, which speaks to nobody but us. */
export class Codex {
  readonly #folder = mkdtempSync(join(tmpdir(), "fairlead-codex-"));
  readonly #env: NodeJS.ProcessEnv;

  constructor({ key, config }: CodexOptions) {
    const home = join(this.#folder, "home");
    mkdirSync(home);
    mkdirSync(join(this.#folder, "work"));
    writeFileSync(join(home, "config.toml"), config);
    this.#env = {
      PATH: process.env["PATH"],
      HOME: home,
      CODEX_HOME: home,
      FAIRLEAD_API_KEY: key,
      // Whatever it would ask of anybody else ends here.
      HTTPS_PROXY: "http://127.0.0.1:9",
      HTTP_PROXY: "http://127.0.0.1:9",
      NO_PROXY: "127.0.0.1",
    };
  }

  /** @returns what it told in its stream of events, and its exit code. */
  async exec(...args: readonly string[]): Promise<{ readonly events: CodexEvent[]; readonly code: number }> {
    const options = { env: this.#env, cwd: join(this.#folder, "work") };
    const child = run(CODEX, ["exec", "--skip-git-repo-check", "--json", ...args], options);
    child.child.stdin?.end();
    const { stdout, code } = await child.then(
      (done) => ({ ...done, code: 0 }),
      (error: { stdout: string; code: number }) => error,
    );
    const events = stdout.split("\n").filter((line) => line.startsWith("{"));
    return { events: events.map((line) => JSON.parse(line) as CodexEvent), code };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

export interface CodexEvent {
  readonly type: string;
  readonly item?: { readonly type: string; readonly text?: string };
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number };
  readonly error?: { readonly message: string };
}

/** Speaks to nobody but us, and gives up at once. @param baseUrl as SDKs want it. */
export const codexConfig = (baseUrl: string, model: string): string => `
model = "${model}"
model_provider = "fairlead"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false
web_search = "disabled"
[analytics]
enabled = false
[model_providers.fairlead]
name = "Fairlead"
base_url = "${baseUrl}"
env_key = "FAIRLEAD_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`;
