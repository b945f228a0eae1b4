import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHAT_MODELS, ChatStage } from "../support/chat-stage.ts";
import { HELLO } from "../support/scripted-model.ts";
import { SnippetFolder, snippetsOf, titleOf } from "./snippets.ts";
import { describeClient } from "./support.ts";

const PAGE = "chat.md";
const programs = snippetsOf(PAGE, "ts");
const [curl = ""] = snippetsOf(PAGE, "sh");

describeClient("the programs in docs/chat.md", () => {
  let stage: ChatStage;
  let folder: SnippetFolder;
  let env: (model: string) => Readonly<Record<string, string>>;

  beforeAll(async () => {
    folder = new SnippetFolder();
    stage = await ChatStage.start();
    const { identity } = await stage.newPerson("ann");
    env = (model) => ({
      FAIRLEAD_BASE_URL: stage.url,
      FAIRLEAD_TOKEN: identity.token,
      FAIRLEAD_PROJECT_ID: identity.projectId,
      FAIRLEAD_MODEL: model,
    });
  });
  afterAll(async () => {
    await stage.stop();
    folder.remove();
  });

  const inputs = (): readonly (readonly unknown[])[] =>
    stage.upstream.asked.map(({ body }) => (body["input"] ?? body["messages"]) as readonly unknown[]);

  test("are all known here and type-check", { timeout: 120_000 }, async () => {
    expect(programs.map(titleOf)).toEqual(["openai", "@ai-sdk/openai"]);
    expect(snippetsOf(PAGE, "sh")).toHaveLength(1);
    expect(await folder.check(programs)).toBe("");
  });

  describe.each(Object.values(CHAT_MODELS))("with %s", (model) => {
    test("send the second question with the first, and the one after /new alone (openai)", async () => {
      const said = await folder.run(programs[0] ?? "", env(model));
      expect(said.split(HELLO)).toHaveLength(4);
      expect(
        inputs()
          .slice(-3)
          .map(({ length }) => length),
      ).toEqual([1, 3, 1]);
    });

    test("continue one session (the AI SDK and LangChain)", async () => {
      const said = await folder.run(programs[1] ?? "", env(model));
      expect(said.split(HELLO)).toHaveLength(3);
      expect(
        inputs()
          .slice(-2)
          .map(({ length }) => length),
      ).toEqual([1, 3]);
    });
  });

  test("send the second question with the first (curl)", async () => {
    // The command line's own tests hold what `fairlead token` prints.
    const fairlead = 'fairlead() { printf "%s\\n" "$FAIRLEAD_TOKEN"; }';
    const said = await folder.shell(`${fairlead}\n${curl}`, env(CHAT_MODELS.chat));
    expect(said.split("data: [DONE]")).toHaveLength(3);
    expect(
      inputs()
        .slice(-2)
        .map(({ length }) => length),
    ).toEqual([1, 3]);
  });
});
