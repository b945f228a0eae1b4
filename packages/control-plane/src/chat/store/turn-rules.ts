import { createHash } from "node:crypto";
import { type ResponsesItem } from "../items/chat-item.ts";
import type { TurnStatus } from "./turn-log.ts";

/** When a turn is a retry of the previous one (decisions/0021). Pure. */

/** SHA-256 (hex) of what a turn adds to the history. Ignores IDs, because a retrying client may create new ones. */
export function hashQuestion(items: readonly ResponsesItem[]): string {
  const told = items.map(({ id: _id, status: _status, ...item }) => item);
  return createHash("sha256").update(JSON.stringify(told)).digest("hex");
}

export interface PastTurn {
  readonly status: TurnStatus;
  readonly why: string;
  readonly questionHash: string;
  /** Number of items in its response. */
  readonly answerCount: number;
  /** Unix milliseconds. */
  readonly endedAt: number;
}

/** How long after a disconnect the same question counts as a retry, although part of the response exists. */
const REPEAT_MS = 60_000;

/** Whether a question replaces the session's last turn instead of following it. */
export function supersedes(last: PastTurn, questionHash: string, now: number): boolean {
  if (last.questionHash !== questionHash) return false;
  if (last.answerCount === 0) return true;
  // A response that the user stopped has been read.
  if (last.status === "completed" || last.why === "stopped") return false;
  // Any other end is an error that the client saw, and clients retry after errors.
  return last.why !== "client_left" || now - last.endedAt <= REPEAT_MS;
}
