import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const here = new URL(".", import.meta.url).pathname;

/** The programs that a page of the documentation shows, as they stand there. */
export function snippetsOf(page: string, language: string): string[] {
  const text = readFileSync(join(here, "../../docs", page), "utf8");
  const fences = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"));
  return Array.from(fences, ([, code = ""]) => code);
}

/** By what a program is known: the package that it imports first. */
export const titleOf = (code: string): string => /from "([^"]+)"/.exec(code)?.[1] ?? code.slice(0, 40);

/** Where such programs lie and run: beside the packages that they import. */
export class SnippetFolder {
  readonly #folder: string;

  constructor() {
    mkdirSync(join(here, ".cache"), { recursive: true });
    this.#folder = mkdtempSync(join(here, ".cache/snippets-"));
  }

  /** @returns what the compiler says of them; "" for nothing. */
  async check(programs: readonly string[]): Promise<string> {
    for (const [index, code] of programs.entries()) writeFileSync(join(this.#folder, `${index}.ts`), code);
    const config = { extends: "../../tsconfig.json", include: ["."], compilerOptions: { incremental: false } };
    writeFileSync(join(this.#folder, "tsconfig.json"), JSON.stringify(config));
    const { stdout } = await run("tsc", ["-p", this.#folder]).catch((error: { stdout: string }) => error);
    return stdout;
  }

  /** @returns what it printed. @throws where it fails. */
  async run(code: string, env: Readonly<Record<string, string>>): Promise<string> {
    const file = join(this.#folder, "program.ts");
    writeFileSync(file, code);
    return (await run(process.execPath, [file], { env: withoutInternet(env) })).stdout;
  }

  async shell(code: string, env: Readonly<Record<string, string>>): Promise<string> {
    return (await run("bash", ["-ec", code], { env: withoutInternet(env) })).stdout;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

function withoutInternet(env: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], NODE_OPTIONS: `--import ${here}no-internet.ts`, ...env };
}
