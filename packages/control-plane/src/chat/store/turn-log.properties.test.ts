import fc from "fast-check";
import { expect, test } from "vitest";
import { openMemoryStore } from "../../testing.fixture.ts";
import { buildInput } from "../items/history-input.ts";
import { ANN, ANSWERED, asks, BROKEN, ChatLogStage, LEFT, says } from "./chat-log.fixture.ts";

/** Random histories against a model of what a history must be (decisions/0021). */

const ENDS = {
  answered: ANSWERED,
  left: LEFT,
  stopped: { ...LEFT, why: "stopped" },
  broken: BROKEN,
} as const;
type How = keyof typeof ENDS | "died";

type Step =
  | {
      readonly do: "ask";
      readonly text: string;
      readonly how: How;
      readonly pieces: number;
      readonly afterMs: number;
      readonly key: string | null;
    }
  | { readonly do: "regenerate"; readonly how: How; readonly pieces: number; readonly afterMs: number };

const how = fc.constantFrom<How>("answered", "left", "stopped", "broken", "died");
const common = { how, pieces: fc.nat(2), afterMs: fc.constantFrom(0, 1000, 60_000, 60_001) };
const stepArb: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("ask" as const),
      text: fc.constantFrom("a", "b"),
      key: fc.constantFrom(null, "k1", "k2"),
      ...common,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("regenerate" as const), ...common }) },
);

interface ModelTurn {
  readonly text: string;
  readonly answers: readonly string[];
  readonly how: How;
  readonly endedAt: number;
}

/** What is said, by the words of decisions/0021. */
function isReplaced(last: ModelTurn | undefined, text: string, now: number): boolean {
  if (last === undefined || last.text !== text) return false;
  if (last.answers.length === 0) return true;
  if (last.how === "left") return now <= last.endedAt + 60_000;
  return last.how === "broken" || last.how === "died";
}

test("a history follows from its questions and responses, whatever is repeated, abandoned, stopped, cut off or lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stepArb, { minLength: 1, maxLength: 14 }), async (steps) => {
      const stage = await ChatLogStage.open(openMemoryStore);
      const { id } = await stage.chat.chatSessions.open(ANN, { model: null, openedFrom: null });
      const live: ModelTurn[] = [];
      const keys = new Map<string, { readonly text: string; readonly turn: ModelTurn }>();
      let { turnLog } = stage.chat;
      let series = 10;
      for (const step of steps) {
        const last = live.at(-1);
        if (step.do === "regenerate" && last === undefined) continue;
        const text = step.do === "ask" ? step.text : (last?.text ?? "");
        const key = step.do === "ask" ? step.key : null;
        const known = key === null ? undefined : keys.get(key);
        const replaces = step.do === "regenerate" ? (await turnLog.lastTurn(ANN, id))?.turnId : undefined;
        const request = { dialect: "responses", model: "a/b", contextTokens: 9000, requestHash: text } as const;
        const asked = {
          turn: asks(text),
          ...request,
          idempotencyKey: key,
          ...(replaces === undefined ? {} : { replaces }),
        };
        if (known !== undefined && known.text !== text) {
          await expect(turnLog.begin(ANN, id, asked)).rejects.toMatchObject({ code: "idempotency_mismatch" });
          continue;
        }
        const now = stage.clock.now();
        const begun = await turnLog.begin(ANN, id, asked);
        if (known?.turn.how === "answered") {
          expect(begun.replay).toMatchObject({ response: { of: text } });
          continue;
        }
        if (begun.replay !== null) throw new Error("replayed what was never answered");
        const wasAskedByKey = known !== undefined && known.turn === last;
        if (replaces !== undefined || wasAskedByKey || isReplaced(last, text, now)) live.pop();
        const answers = Array.from({ length: step.pieces }, (_, n) => `${text}${n} of ${begun.turnId}`);
        const items = answers.map((each) => says(each));
        if (step.how === "died") {
          await turnLog.flush(begun.turnId, items);
          ({ turnLog } = stage.restarted(series++));
          await turnLog.closeLost();
        } else {
          await turnLog.finish(begun.turnId, {
            ...ENDS[step.how],
            items,
            response: step.how === "answered" ? { of: text } : null,
          });
        }
        const turn = { text, answers, how: step.how, endedAt: stage.clock.now() };
        live.push(turn);
        if (key !== null) keys.set(key, { text, turn });
        stage.clock.advance(step.afterMs);
        const said = live.flatMap((each) => [
          `user: ${each.text}`,
          ...each.answers.map((answer) => `assistant: ${answer}`),
        ]);
        expect(await stage.said(id)).toEqual(said);
        expect(await stage.chat.chatSessions.require(ANN, id)).toMatchObject({
          messageCount: said.length,
          itemCount: said.length,
        });
      }
      const begun = await turnLog.begin(ANN, id, {
        turn: asks("end"),
        dialect: "chat",
        model: "a/b",
        contextTokens: 9000,
        requestHash: "end",
        idempotencyKey: null,
      });
      if (begun.replay !== null) throw new Error("replayed");
      const { input } = buildInput(begun.history, asks("end"), { contextTokens: 9000 });
      expect(input).toHaveLength(live.reduce((sum, { answers }) => sum + 1 + answers.length, 1));
      await stage.close();
    }),
    { numRuns: 60 },
  );
});
