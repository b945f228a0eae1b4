import { z } from "zod";
import { readEvents, type StreamEvent } from "./stream-events.ts";

/** One person's calls of the chat routes, as a client of their own would make them. */

export interface ChatIdentity {
  readonly url: string;
  readonly token: string;
  readonly projectId: string;
}

export interface TurnOptions {
  readonly session?: string | undefined;
  readonly model?: string;
  readonly dialect?: "responses" | "completions";
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  /** More fields of the body. */
  readonly more?: object;
}

export interface TurnAnswer {
  readonly status: number;
  readonly session: string;
  readonly headers: Headers;
  /** Of a stream; [] for JSON. */
  readonly events: readonly StreamEvent[];
  /** Whether the stream had its end mark. */
  readonly done: boolean;
  /** All that the model said. */
  readonly text: string;
  readonly error: Readonly<Record<string, unknown>>;
}

const messagesSchema = z.object({
  messages: z.array(
    z.looseObject({ id: z.string(), role: z.string(), content: z.string(), status: z.string(), createdAt: z.string() }),
  ),
  nextPageToken: z.string().nullish(),
});
const historySchema = z.object({ messages: z.array(z.object({ role: z.string(), content: z.string() })) });
const errorSchema = z.looseObject({ error: z.looseObject({ code: z.string().nullable() }) });
const balanceSchema = z.looseObject({ balanceNanoDollars: z.number(), heldNanoDollars: z.number() });
const ledgerSchema = z.looseObject({
  ledgerEntries: z.array(z.looseObject({ kind: z.string(), amountNanoDollars: z.number() })),
});
export type Message = z.infer<typeof messagesSchema>["messages"][number];

export class ChatCaller {
  readonly identity: ChatIdentity;

  constructor(identity: ChatIdentity) {
    this.identity = identity;
  }

  /** As SDKs want them. */
  get headers(): Readonly<Record<string, string>> {
    return { "service-project-id": this.identity.projectId };
  }

  /** Begins a turn and leaves its answer to be read. */
  begin(text: string, { session, dialect = "responses", idempotencyKey, signal, ...rest }: TurnOptions = {}) {
    const { model, more = {} } = rest;
    const isChat = dialect === "completions";
    return this.call("POST", `/v1/chat/${dialect}`, {
      body: {
        messages: [{ role: "user", content: text }],
        ...(model === undefined ? {} : { model }),
        ...(isChat ? { stream: true } : {}),
        ...more,
      },
      headers: {
        ...(session === undefined ? {} : { "service-session-id": session }),
        ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
      },
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /** A whole turn. What breaks off on the way is an answer without its end mark. */
  async turn(text: string, options: TurnOptions = {}): Promise<TurnAnswer> {
    return readTurn(await this.begin(text, options));
  }

  call(
    method: string,
    path: string,
    more: { readonly body?: object; readonly headers?: Record<string, string>; readonly signal?: AbortSignal } = {},
  ): Promise<Response> {
    const { url, token } = this.identity;
    return fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...this.headers,
        ...(more.body === undefined ? {} : { "content-type": "application/json" }),
        ...more.headers,
      },
      ...(more.body === undefined ? {} : { body: JSON.stringify(more.body) }),
      ...(more.signal === undefined ? {} : { signal: more.signal }),
    });
  }

  /** Every message of a session that counts, in order. */
  async messages(session: string): Promise<Message[]> {
    const all: Message[] = [];
    for (let token = ""; ; ) {
      const query = new URLSearchParams({ order: "asc", pageSize: "200", ...(token ? { pageToken: token } : {}) });
      const answer = await this.call("GET", `/v1/chat/sessions/${session}/messages?${query.toString()}`);
      const page = messagesSchema.parse(await answer.json());
      all.push(...page.messages);
      if (!page.nextPageToken) return all;
      token = page.nextPageToken;
    }
  }

  /** `role: text` of each message, as `GET /v1/chat/history` tells it. */
  async history(session: string): Promise<string[]> {
    const answer = await this.call("GET", `/v1/chat/history?sessionId=${session}`);
    return historySchema.parse(await answer.json()).messages.map(({ role, content }) => `${role}: ${content}`);
  }

  async balance(): Promise<z.infer<typeof balanceSchema>> {
    return balanceSchema.parse(await (await this.call("GET", `${this.#project}/balance`)).json());
  }

  /** Of the ledger: what was paid for calls, in nano-dollars, each. */
  async charges(): Promise<number[]> {
    const answer = await this.call("GET", `${this.#project}/ledger?pageSize=200`);
    const { ledgerEntries } = ledgerSchema.parse(await answer.json());
    return ledgerEntries.filter(({ kind }) => kind === "settle").map(({ amountNanoDollars }) => amountNanoDollars);
  }

  get #project(): string {
    return `/v1/projects/${this.identity.projectId}`;
  }
}

export async function readTurn(response: Response): Promise<TurnAnswer> {
  const session = response.headers.get("service-session-id") ?? "";
  const body = await textSoFar(response);
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const { events, done } = isStream ? readEvents(body) : { events: [], done: false };
  const refused = isStream ? null : errorSchema.safeParse(JSON.parse(body));
  return {
    status: response.status,
    session,
    headers: response.headers,
    events,
    done,
    text: events.map(textOfEvent).join(""),
    error: refused?.success ? refused.data.error : {},
  };
}

/** All that came, even where the connection broke. */
async function textSoFar(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of response.body ?? []) text += decoder.decode(piece as Uint8Array, { stream: true });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  return text;
}

function textOfEvent({ type, delta, choices }: StreamEvent): string {
  if (type === "response.output_text.delta") return String(delta);
  if (!Array.isArray(choices)) return "";
  return (choices as readonly { readonly delta: { readonly content?: string | null } }[])
    .map((choice) => choice.delta.content ?? "")
    .join("");
}
