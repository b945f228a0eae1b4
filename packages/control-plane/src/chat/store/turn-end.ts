import type { IdSource } from "@fairlead/protocol/values/ids";
import { itemTypeOf } from "../items/chat-item.ts";
import { grown, shrunk } from "../items/chat-session.ts";
import { answerItems } from "./answer-stored.ts";
import type { ChatStores } from "./chat-stores.ts";
import type { TurnEnd } from "./turn-log.ts";

/** How a turn ends, inside one transaction (decisions/0021). */

/** Of a turn whose process died, or that its process never learnt of. */
export const INTERRUPTED = { status: "incomplete", why: "interrupted", usage: null, response: null } as const;

interface Ending {
  readonly turnId: string;
  readonly end: TurnEnd;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Nothing where the turn has ended before, or its session is gone. */
export async function endTurn(stores: ChatStores, ids: IdSource, { turnId, end, at }: Ending): Promise<void> {
  const { turns, sessions, items } = stores;
  const turn = await turns.end(turnId, { ...end, answerCount: end.items.length, at });
  const session = turn && (await sessions.findForUpdate(turn, turn.sessionId));
  if (!turn || !session) return;
  if (end.withdrawn === true) {
    await sessions.setActivity(shrunk(session, await items.supersede(session.id, turnId, turn.firstPosition)));
    return;
  }
  const makeId = (): string => ids.next("message");
  const answer = answerItems({ turnId, end, position: session.nextPosition, at }, makeId);
  const taken = await items.known(
    session.id,
    answer.map(({ id }) => id),
  );
  await items.append(
    session.id,
    answer.map((item) => (taken.has(item.id) ? { ...item, id: makeId() } : item)),
  );
  await sessions.setActivity(grown(session, end.items.map(itemTypeOf), at));
}
