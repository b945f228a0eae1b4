import type {
  ChatItemStatus,
  ResponsesItem,
  StoredItem,
} from "../../packages/control-plane/src/chat/items/chat-item.ts";
import { grown, type SessionRecord } from "../../packages/control-plane/src/chat/items/chat-session.ts";
import { chatStores } from "../../packages/control-plane/src/chat/store/chat-stores.ts";
import type { TurnRecord } from "../../packages/control-plane/src/chat/store/chat-turn-store.ts";
import { openDatabase } from "../../packages/control-plane/src/installation/db/open.ts";
import type { ProjectId, UserId } from "../../packages/protocol/src/values/ids.ts";

export interface StoredTurns {
  readonly sessionId: string;
  /** What was asked, in order. */
  readonly questions: readonly string[];
  /** To each of them. */
  readonly answer: string;
}

/** Turns of a session in which a turn has ended, like that one, without a model or a call. @param file of the server's store. */
export async function fillSession(file: string, { sessionId, questions, answer }: StoredTurns): Promise<void> {
  const store = openDatabase({ file });
  try {
    const row = store.db.selectFrom("chat_session").select(["project_id", "user_id"]).where("id", "=", sessionId);
    const { project_id, user_id } = await row.executeTakeFirstOrThrow();
    const scope = { projectId: project_id as ProjectId, userId: user_id as UserId };
    await chatStores(store.db).transaction(async ({ sessions, turns, items }) => {
      let session = await sessions.findForUpdate(scope, sessionId);
      const last = session?.lastTurnId ? await turns.find(scope.projectId, session.lastTurnId) : null;
      if (session === null || last === null) throw new Error(`${sessionId} has no turn`);
      for (const question of questions) {
        const turn = turnLike(last, session);
        const said = [message("user", "input_text", question), message("assistant", "output_text", answer)];
        await turns.insert(turn);
        await items.append(sessionId, said.map(storedIn(turn)));
        session = { ...grown(session, ["message", "message"], session.updatedAt), lastTurnId: turn.id };
      }
      await sessions.setActivity(session);
    });
  } finally {
    await store.close();
  }
}

function turnLike(last: TurnRecord, { nextPosition }: SessionRecord): TurnRecord {
  return { ...last, id: `${last.id}_${nextPosition}`, firstPosition: nextPosition };
}

const storedIn =
  ({ id: turnId, firstPosition, beganAt }: TurnRecord) =>
  (item: ResponsesItem, index: number): StoredItem => {
    const status: ChatItemStatus = "completed";
    const position = firstPosition + index;
    return { id: `${turnId}_${index}`, turnId, position, status, item, createdAt: beganAt, usage: null };
  };

const message = (role: string, type: string, text: string): ResponsesItem => ({
  type: "message",
  role,
  content: [{ type, text }],
});
