import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HELLO } from "../support/scripted-model.ts";
import { MODEL } from "../support/two-dialects.ts";
import { Codex } from "./codex.ts";
import { SnippetFolder, snippetsOf, titleOf } from "./snippets.ts";
import { describeClient, useStage } from "./support.ts";

const PAGE = "inference.md";
const programs = snippetsOf(PAGE, "ts");

const SAID: Readonly<Record<string, readonly string[]>> = {
  openai: [HELLO, "13 tokens", "The tool says: sunny"],
  "@ai-sdk/openai": ["The tool says: sunny"],
  "@openai/agents": [HELLO],
  "@langchain/openai": [HELLO],
};

describeClient("the programs in docs/inference.md", () => {
  const stage = useStage();
  let folder: SnippetFolder;

  beforeAll(() => {
    folder = new SnippetFolder();
  });
  afterAll(() => folder.remove());

  const env = (model: string) => ({
    FAIRLEAD_MODELS_URL: stage.plane.url,
    FAIRLEAD_API_KEY: stage.key,
    FAIRLEAD_MODEL: model,
  });

  test("are all known here", () => {
    expect(programs.map(titleOf)).toEqual(Object.keys(SAID));
    expect(snippetsOf(PAGE, "sh")).toHaveLength(1);
    expect(snippetsOf(PAGE, "toml")).toHaveLength(1);
  });

  test("type-check", { timeout: 120_000 }, async () => {
    expect(await folder.check(programs)).toBe("");
  });

  describe.each([
    ["chat completions", MODEL.chat],
    ["responses", MODEL.responses],
  ])("with a model that speaks %s", (_name, model) => {
    test.each(programs.map((code) => [titleOf(code), code] as const))("%s", async (title, code) => {
      const said = await folder.run(code, env(model));
      for (const text of SAID[title] ?? []) expect(said).toContain(text);
    });

    test("curl", async () => {
      const said = await folder.shell(snippetsOf(PAGE, "sh")[0] ?? "", env(model));
      expect(said).toContain('"content":"Hello "');
      expect(said.endsWith("data: [DONE]\n\n")).toBe(true);
    });

    test("codex", async () => {
      const config = (snippetsOf(PAGE, "toml")[0] ?? "")
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
