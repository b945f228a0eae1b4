import { DomainError } from "@fairlead/protocol/errors";
import type { ChatScope } from "../items/chat-scope.ts";
import { shrunk } from "../items/chat-session.ts";
import type { ChatStores } from "./chat-stores.ts";
import { sessionBusy, sessionNotFound } from "./turn-begin.ts";

/** Deletes the newest turn, inside one transaction. */

export interface TurnToRemove {
  readonly scope: ChatScope;
  readonly sessionId: string;
  readonly turnId: string;
}

/**
 * Only the newest turn, because later ones depend on it. Also deletes what it superseded.
 * @throws DomainError session_not_found, session_busy, invalid_request
 */
export async function removeTurn(stores: ChatStores, removed: TurnToRemove): Promise<void> {
  const { scope, sessionId, turnId } = removed;
  const { sessions, turns, items } = stores;
  const session = await sessions.findForUpdate(scope, sessionId);
  if (session === null) throw sessionNotFound();
  if ((await turns.findPartial(sessionId)) !== null) throw sessionBusy();
  const newest = await items.lastBefore(sessionId, session.nextPosition);
  const turn = newest?.turnId === turnId ? await turns.find(scope.projectId, turnId) : null;
  if (turn === null) throw notNewest(newest?.turnId ?? null);
  const left = await items.lastBefore(sessionId, turn.firstPosition);
  const end = left?.position ?? 0;
  const types = await items.deleteAfter(sessionId, end);
  await turns.deleteAfter(sessionId, end);
  const isNamed = left !== null || session.titledByPerson;
  const title = isNamed ? session.title : "";
  await sessions.setActivity({ ...shrunk(session, types), title, lastTurnId: left?.turnId ?? null });
}

function notNewest(newest: string | null): DomainError {
  const message =
    newest === null
      ? "This session has no turns to delete."
      : `Only the newest turn of a session can be deleted: ${newest}.`;
  return new DomainError("invalid_request", message, { param: "turnId" });
}
