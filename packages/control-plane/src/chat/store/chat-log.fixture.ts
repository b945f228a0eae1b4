import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import type { ProjectId, UserId } from "@fairlead/protocol/values/ids";
import { ProjectAccess } from "../../access/auth/access.ts";
import { aloneOn } from "../../installation/cluster/membership.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { fixedMemberships, insertProject, insertUser, type OpenStore } from "../../testing.fixture.ts";
import { type ChatServices, createChatServices } from "../chat-room.ts";
import type { HistoryMessage, ResponsesItem } from "../items/chat-item.ts";
import type { ChatScope } from "../items/chat-scope.ts";
import type { HistoryTail } from "../items/history-input.ts";
import { type NewTurnItems, readTurn } from "../items/turn-input.ts";
import type { NewTurn, TurnEnd } from "./turn-log.ts";

/** What is stored of chats, without anybody who answers. */

export const scopeOf = (projectId: string, userId: string): ChatScope => ({
  projectId: projectId as ProjectId,
  userId: userId as UserId,
});

export const ANN = scopeOf("prj_1", "usr_ann");

export const asks = (text: string): NewTurnItems => readTurn({ messages: [{ role: "user", content: text }] });

export const gives = (...outputs: readonly (readonly [callId: string, output: string])[]): NewTurnItems =>
  readTurn({ input: outputs.map(([call_id, output]) => ({ type: "function_call_output", call_id, output })) });

export const says = (text: string, more: object = {}): ResponsesItem => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
  ...more,
});

export const calls = (call_id: string, name = "look"): ResponsesItem => ({
  type: "function_call",
  call_id,
  name,
  arguments: "{}",
  status: "completed",
});

export const ANSWERED = { status: "completed", why: "completed", usage: null, response: null } as const;
export const LEFT = { status: "incomplete", why: "client_left", usage: null, response: null } as const;
export const BROKEN = { status: "failed", why: "upstream_failed", usage: null, response: null } as const;

export interface Begun {
  readonly sessionId: string;
  readonly turnId: string;
  readonly history: HistoryTail;
  readonly items: readonly ResponsesItem[];
}

export class ChatLogStage {
  readonly clock = new TestClock();
  readonly store: OpenedDatabase;
  readonly chat: ChatServices;

  private constructor(store: OpenedDatabase) {
    this.store = store;
    this.chat = this.restarted(1);
  }

  static async open(open: OpenStore): Promise<ChatLogStage> {
    const store = await open();
    for (const user of ["usr_ann", "usr_ben"]) await insertUser(store, user);
    for (const project of ["prj_1", "prj_2"]) await insertProject(store, project, "usr_ann");
    return new ChatLogStage(store);
  }

  /** A program that starts anew on the same store. */
  restarted(series: number): ChatServices {
    const access = new ProjectAccess(fixedMemberships(() => "member"));
    return createChatServices({
      ...this.store,
      access,
      clock: this.clock,
      ids: countingIds(series),
      membership: aloneOn(`inc_${series}`),
    });
  }

  async begin(
    sessionId: string | null,
    turn: NewTurnItems,
    more: Partial<NewTurn> & { scope?: ChatScope } = {},
  ): Promise<Begun> {
    const { scope = ANN, ...own } = more;
    const begun = await this.chat.turnLog.begin(scope, sessionId, {
      turn,
      dialect: "responses",
      model: "node/model",
      contextTokens: 100_000,
      requestHash: "h",
      idempotencyKey: null,
      ...own,
    });
    if (begun.replay !== null) throw new Error("it was replayed");
    return begun;
  }

  /** A whole turn. @returns its session. */
  async turn(sessionId: string | null, turn: NewTurnItems | string, end: Partial<TurnEnd> = {}): Promise<string> {
    const begun = await this.begin(sessionId, typeof turn === "string" ? asks(turn) : turn);
    await this.chat.turnLog.finish(begun.turnId, { ...ANSWERED, items: [says("yes")], ...end });
    return begun.sessionId;
  }

  async history(sessionId: string): Promise<HistoryMessage[]> {
    const messages: HistoryMessage[] = [];
    for await (const page of await this.chat.chatHistory.history(ANN, sessionId)) messages.push(...page);
    return messages;
  }

  async said(sessionId: string): Promise<string[]> {
    return (await this.history(sessionId)).map(({ role, content }) => `${role}: ${content}`);
  }

  close(): Promise<void> {
    return this.store.close();
  }
}
