import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HELLO } from "../support/scripted-model.ts";
import { MODEL } from "../support/two-dialects.ts";
import { Codex } from "./codex.ts";
import { describeClient, useStage } from "./support.ts";

const run = promisify(execFile);
const here = new URL(".", import.meta.url).pathname;
const page = readFileSync(join(here, "../../docs/inference.md"), "utf8");

/** The programs that the page shows, as they stand there. */
function snippets(language: string): string[] {
  const fences = page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"));
  return Array.from(fences, ([, code = ""]) => code);
}

/** By what a program is known: the package that it imports first. */
const titleOf = (code: string): string => /from "([^"]+)"/.exec(code)?.[1] ?? code.slice(0, 40);

const SAID: Readonly<Record<string, readonly string[]>> = {
  openai: [HELLO, "13 tokens", "The tool says: sunny"],
  "@ai-sdk/openai": ["The tool says: sunny"],
  "@openai/agents": [HELLO],
  "@langchain/openai": [HELLO],
};

describeClient("the programs of docs/inference.md", () => {
  const stage = useStage();
  let folder = "";

  beforeAll(() => {
    // Beside the packages that they import.
    mkdirSync(join(here, ".cache"), { recursive: true });
    folder = mkdtempSync(join(here, ".cache/snippets-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const env = (model: string): NodeJS.ProcessEnv => ({
    PATH: process.env["PATH"],
    FAIRLEAD_MODELS_URL: stage.plane.url,
    FAIRLEAD_API_KEY: stage.key,
    FAIRLEAD_MODEL: model,
    NODE_OPTIONS: `--import ${here}no-internet.ts`,
  });

  test("are the ones that are known here", () => {
    expect(snippets("ts").map(titleOf)).toEqual(Object.keys(SAID));
    expect(snippets("sh")).toHaveLength(1);
    expect(snippets("toml")).toHaveLength(1);
  });

  test("are typed", { timeout: 120_000 }, async () => {
    for (const [index, code] of snippets("ts").entries()) writeFileSync(join(folder, `${index}.ts`), code);
    const config = { extends: "../../tsconfig.json", include: ["."], compilerOptions: { incremental: false } };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const { stdout } = await run("tsc", ["-p", folder]).catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  });

  describe.each([
    ["chat completions", MODEL.chat],
    ["responses", MODEL.responses],
  ])("with a model that speaks %s", (_name, model) => {
    test.each(snippets("ts").map((code) => [titleOf(code), code] as const))("%s", async (title, code) => {
      const file = join(folder, "program.ts");
      writeFileSync(file, code);
      const { stdout } = await run(process.execPath, [file], { env: env(model) });
      for (const text of SAID[title] ?? []) expect(stdout).toContain(text);
    });

    test("curl", async () => {
      const { stdout } = await run("bash", ["-c", snippets("sh")[0] ?? ""], { env: env(model) });
      expect(stdout).toContain('"content":"Hello "');
      expect(stdout.endsWith("data: [DONE]\n\n")).toBe(true);
    });

    test("codex", async () => {
      const config = (snippets("toml")[0] ?? "")
        .replace("local/tinychat-6m", model)
        .replace("http://127.0.0.1:8081/v1", stage.baseUrl);
      expect(config).toContain(stage.baseUrl);
      const codex = new Codex({ key: stage.key, config });
      const { events } = await codex.exec("Hi");
      codex.remove();
      expect(JSON.stringify(events)).toContain(HELLO);
    });
  });
});
