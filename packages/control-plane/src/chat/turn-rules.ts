import { createHash } from "node:crypto";
import { type ResponsesItem } from "./chat-item.ts";
import type { TurnStatus } from "./turn-log.ts";

/** When a turn is the one before it, asked again (design §7). Pure. */

/** SHA-256 (hex) of what a turn adds to the history. Ids do not count: a client that repeats itself may make new ones. */
export function hashQuestion(items: readonly ResponsesItem[]): string {
  const told = items.map(({ id: _id, status: _status, ...item }) => item);
  return createHash("sha256").update(JSON.stringify(told)).digest("hex");
}

export interface PastTurn {
  readonly status: TurnStatus;
  readonly why: string;
  readonly questionHash: string;
  /** How many items its answer has. */
  readonly answerCount: number;
  /** Unix milliseconds. */
  readonly endedAt: number;
}

/** How long after its caller left a turn is asked again by the same question, though a part of its answer is there. */
const REPEAT_MS = 60_000;

/** Whether a question takes the place of the session's last turn, rather than following it. */
export function supersedes(last: PastTurn, questionHash: string, now: number): boolean {
  if (last.questionHash !== questionHash) return false;
  if (last.answerCount === 0) return true;
  // What a person has stopped, they have read.
  if (last.status === "completed" || last.why === "stopped") return false;
  // Any other end is a fault that its caller was told of, and that clients answer by asking again.
  return last.why !== "client_left" || now - last.endedAt <= REPEAT_MS;
}
