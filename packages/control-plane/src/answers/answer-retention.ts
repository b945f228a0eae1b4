import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { AnswerStore } from "./answer-store.ts";

const EVERY_MS = 600_000;

/** @param answers on the store's handle for long work. */
export function answerRetention(answers: AnswerStore, clock: Clock): Retention {
  return {
    what: "kept answers",
    everyMs: EVERY_MS,
    removeSome: (limit) => answers.deleteExpired(clock.now(), limit),
  };
}
