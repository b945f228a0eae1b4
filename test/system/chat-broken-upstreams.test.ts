import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { responsesOrderProblems } from "../../packages/dialects/src/testing/responses-order.ts";
import { breachesOf, breakingAt } from "../support/broken-upstream.ts";
import type { ChatCaller, TurnAnswer } from "../support/chat-caller.ts";
import { CHAT_MODELS, ChatStage } from "../support/chat-stage.ts";
import { HELLO } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";

/** An upstream that breaks off before every event of its answer, and in the middle of every one; cut, and as if it were done. */

const CREDITS = 1_000_000_000_000;
let stage: ChatStage;
let ann: ChatCaller;
let asked = 0;

beforeAll(async () => {
  stage = await ChatStage.start({ FAIRLEAD_BILLING_MODE: "prepaid" });
  ann = await stage.newPerson("ann");
  await stage.addCredits(ann.identity.projectId, CREDITS);
});
afterAll(() => stage.stop());

const isWhole = ({ done }: TurnAnswer): boolean => done;

/** What goes wrong is told, in whatever form is left, and never looks like an end. */
function expectTold(answer: TurnAnswer): void {
  if (answer.events.length === 0) {
    expect(answer).toMatchObject({ status: 502, error: { code: "upstream_failed" } });
    return;
  }
  expect(answer.status).toBe(200);
  const last = answer.events.at(-1);
  if (last?.type !== undefined) {
    expect(answer.events.slice(-2).map(({ type }) => type)).toEqual(["error", "response.failed"]);
    // What is relayed byte by byte is not kept by the pipeline, which ends it with a failed response of no items.
    const isKept = (problem: string): boolean => !problem.startsWith("response.failed holds 0 items");
    expect(responsesOrderProblems(answer.events).filter(isKept)).toEqual([]);
  } else {
    expect(last).toMatchObject({ error: { code: "upstream_failed" } });
  }
}

describe.each(["responses", "completions"] as const)("a turn of %s", (dialect) => {
  describe.each(["responses", "chat"] as const)("with a model that speaks %s", (spoken) => {
    const model = CHAT_MODELS[spoken];

    test.each(breachesOf(spoken).map((breach) => [JSON.stringify(breach), breach] as const))(
      "keeps what was received and can be repeated after %s",
      async (_name, breach) => {
        const question = `Will it hold, ${asked++}?`;
        stage.script = breakingAt(breach);
        const broken = await ann.turn(question, { dialect, model });
        stage.script = stage.upstream.script;
        expect(broken.session).toMatch(/^ses_/);
        const kept = await ann.history(broken.session);
        expect(kept[0]).toBe(`user: ${question}`);
        if (isWhole(broken)) {
          expect(kept).toEqual([`user: ${question}`, `assistant: ${HELLO}`]);
          return;
        }
        expectTold(broken);
        expect(kept.slice(1)).toEqual(broken.text === "" ? [] : [`assistant: ${broken.text}`]);
        expect(HELLO.startsWith(broken.text)).toBe(true);
        const next = await ann.turn(question, { dialect, model, session: broken.session });
        expect(next).toMatchObject({ status: 200, text: HELLO, done: true });
        expect((await ann.history(broken.session)).at(-1)).toBe(`assistant: ${HELLO}`);
      },
    );
  });
});

test("no money stays reserved, and only what was paid for is deducted", async () => {
  await waitFor("the holds to be settled", 20_000, async () => (await ann.balance()).heldNanoDollars === 0);
  expect((await ann.balance()).balanceNanoDollars).toBeLessThan(CREDITS);
});
