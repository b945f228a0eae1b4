import { type ChatMessage, type ChatSession, chatMessageSchema, chatSessionSchema } from "@fairlead/protocol/chat";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import type { PlatformConnection } from "../platform/client-options.ts";
import { type Call, callJson, send } from "../platform/http-client.ts";
import { type ListOptions, listAll } from "../terminal/list-all.ts";
import { type AnswerEnd, readAnswer } from "./answer-events.ts";

/** Chat of one project on the platform host. */

const SESSION_HEADER = "service-session-id";

const pageSchema = z.looseObject({ messages: z.array(chatMessageSchema) });
const stoppedSchema = z.looseObject({ stopped: z.boolean() });
const anything = z.looseObject({});

export interface Turn {
  /** Null opens a new session. */
  readonly sessionId: string | null;
  /** Null regenerates the last response. */
  readonly text: string | null;
  /** Null: the session's or else the project's model. */
  readonly model: string | null;
  /** Reused when the same turn is retried. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

export interface TurnListener {
  /** Called as soon as the session of the turn is known, even if the turn is rejected. */
  onSession(id: string): void;
  onText(piece: string): void;
}

export class ChatClient {
  readonly #host: PlatformConnection;

  constructor(host: PlatformConnection) {
    this.#host = host;
  }

  /** Streams one turn. @throws Refused, BrokenAnswer; the caller's own abort passes through. */
  async ask(turn: Turn, listener: TurnListener): Promise<AnswerEnd> {
    const onHead = (headers: Headers): void => {
      const sessionId = headers.get(SESSION_HEADER);
      if (sessionId !== null) listener.onSession(sessionId);
    };
    const response = await send(this.#host, { ...this.#turnCall(turn, {}), onHead });
    if (!response.headers.has(SESSION_HEADER) || response.body === null) throw this.#unknownForm();
    return readAnswer(response.body, (piece) => listener.onText(piece));
  }

  /** Like `ask`, without streaming. */
  async askWhole(turn: Turn): Promise<{ readonly sessionId: string; readonly response: unknown }> {
    const answer = await send(this.#host, this.#turnCall(turn, { stream: false }));
    const sessionId = answer.headers.get(SESSION_HEADER);
    const parsed = anything.safeParse(await answer.json().catch(() => null));
    if (sessionId === null || !parsed.success) throw this.#unknownForm();
    return { sessionId, response: parsed.data };
  }

  /** Stops the running response; its partial text is kept. @returns whether one was running. */
  async stop(sessionId: string): Promise<boolean> {
    const call = this.#call({ method: "POST", path: `${pathOf(sessionId)}:stop`, body: {} });
    return (await callJson(this.#host, call, stoppedSchema)).stopped;
  }

  /** Most recently used first. @param search text in titles and messages. */
  list(search: string | undefined, options: ListOptions): Promise<ChatSession[]> {
    const list = { path: "/v1/chat/sessions", field: "sessions", item: chatSessionSchema, query: { query: search } };
    return listAll(this.#host, { ...list, headers: this.#headers() }, options);
  }

  get(sessionId: string): Promise<ChatSession> {
    return callJson(this.#host, this.#call({ path: pathOf(sessionId) }), chatSessionSchema);
  }

  rename(sessionId: string, title: string): Promise<ChatSession> {
    const call = this.#call({ method: "PATCH", path: pathOf(sessionId), body: { title } });
    return callJson(this.#host, call, chatSessionSchema);
  }

  delete(sessionId: string): Promise<object> {
    return callJson(this.#host, this.#call({ method: "DELETE", path: pathOf(sessionId) }), anything);
  }

  /** All messages or the first `limit`, oldest first. */
  messages(sessionId: string, options: ListOptions): Promise<ChatMessage[]> {
    const list = { path: `${pathOf(sessionId)}/messages`, field: "messages", item: chatMessageSchema };
    return listAll(this.#host, { ...list, query: { order: "asc" }, headers: this.#headers() }, options);
  }

  /** The last messages, oldest first. */
  async lastMessages(sessionId: string, count: number): Promise<ChatMessage[]> {
    const path = `${pathOf(sessionId)}/messages?order=desc&pageSize=${count}`;
    const { messages } = await callJson(this.#host, this.#call({ path }), pageSchema);
    return messages.toReversed();
  }

  /** The server's export of the session. */
  export(sessionId: string): Promise<object> {
    return callJson(this.#host, this.#call({ path: `${pathOf(sessionId)}/export` }), anything);
  }

  #turnCall({ sessionId, text, model, idempotencyKey, signal }: Turn, more: object): Call {
    const settings = { ...(model === null ? {} : { model }), ...more };
    const session = sessionId === null ? {} : { [SESSION_HEADER]: sessionId };
    const common = { method: "POST", idempotencyKey, signal, headers: { ...this.#headers(), ...session } } as const;
    if (text === null && sessionId !== null) {
      return { ...common, path: `${pathOf(sessionId)}:regenerate`, body: settings };
    }
    const messages = [{ role: "user", content: text }];
    return { ...common, path: "/v1/chat/responses", body: { messages, ...settings } };
  }

  #call(call: Call): Call {
    return { ...call, headers: this.#headers() };
  }

  #headers(): Readonly<Record<string, string>> {
    return { "service-project-id": this.#host.projectId() };
  }

  #unknownForm(): CliError {
    return new CliError(`The platform host at ${this.#host.url} returned an invalid response. Is it Fairlead?`);
  }
}

function pathOf(sessionId: string): string {
  return `/v1/chat/sessions/${encodeURIComponent(sessionId)}`;
}
