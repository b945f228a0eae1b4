import type { AddressInfo } from "node:net";
import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import type { Candidate, ModelCatalog } from "@fairlead/inference/calls/model-catalog";
import { HostStage } from "@fairlead/inference/host/host-stage.fixture";
import type { InferenceHostOptions } from "@fairlead/inference/host/inference-host";
import { DEFAULT_LIMITS } from "@fairlead/inference/host/limits";
import { eventsOf } from "@fairlead/inference/relay/bridged.fixture";
import type { ScriptedCall } from "@fairlead/inference/testing/scripted-upstream";
import { DomainError } from "@fairlead/protocol/errors";
import type { Role } from "@fairlead/protocol/resources";
import { systemIds } from "@fairlead/protocol/values/ids";
import { pino } from "pino";
import { ProjectAccess } from "../access/auth/access.ts";
import type { Authenticate } from "../access/auth/authenticate.ts";
import { listen } from "../http/listening/listen.ts";
import { createPlatformHost, type PlatformApp } from "../http/platform-host.ts";
import { aloneOn } from "../installation/cluster/membership.ts";
import type { OpenedDatabase } from "../installation/db/open.ts";
import {
  asUser,
  fixedMemberships,
  insertProject,
  insertUser,
  type OpenStore,
  openMemoryStore,
} from "../testing.fixture.ts";
import { type ChatServices, createChatServices } from "./chat-room.ts";
import { type ChatRouteServices, registerChatRoutes } from "./chat-routes.ts";
import { itemTypeOf, type ResponsesItem, roleOf, textOf } from "./items/chat-item.ts";
import { type LineLimits, SessionLocks } from "./sessions/session-locks.ts";
import type { TurnLog } from "./store/turn-log.ts";
import { TurnCounters } from "./turns/turn-counters.ts";
import { TurnService, type TurnServiceDeps } from "./turns/turn-service.ts";

/** The upstream of most tests: says these words, one chunk each. */
export const saying =
  (...words: string[]) =>
  (far: ScriptedCall): void => {
    begin(far);
    for (const word of words) far.write(wordChunk(word));
    finish(far);
  };

export function begin(far: ScriptedCall): void {
  far.respond(200, { "content-type": "text/event-stream" });
}

const chunkOf = (choice: object): string =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, ...choice }] })}\n\n`;

export const wordChunk = (content: string): string =>
  chunkOf({ delta: { role: "assistant", content }, finish_reason: null });

export function finish(far: ScriptedCall): void {
  far.write(chunkOf({ delta: {}, finish_reason: "stop" }));
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
  far.write(
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage })}\n\n`,
  );
  far.write("data: [DONE]\n\n");
  far.end();
}

export const MODEL = "node/model";
export const PROJECT = "prj_1";

export interface ChatSetting extends Partial<Pick<TurnServiceDeps, "onLeave" | "flushMs">> {
  readonly open?: OpenStore;
  readonly line?: LineLimits;
  readonly host?: Partial<InferenceHostOptions>;
  readonly origins?: readonly string[];
  /** What stands between the service and its log. */
  readonly wrap?: (log: TurnLog) => TurnServiceDeps["turns"];
}

export interface Asked {
  readonly user?: string;
  readonly project?: string | null;
  readonly session?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** What one answer of a turn says. */
export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly session: string | null;
  readonly text: string;
  /** The data of each event; of an answer that is no stream, its JSON. */
  readonly events: unknown[];
}

/** Chat routes on a real platform host and a real pipeline, whose upstreams the test plays. */
export class ChatStage extends HostStage {
  readonly counters = new TurnCounters();
  readonly log = pino({ level: "silent" });
  readonly models: ModelCatalog = {
    resolve: (_project, name) => this.#resolve(name),
    defaultModel: () => Promise.resolve(this.defaultModel),
    list: () => Promise.resolve([]),
    entry: (_project, id) => Promise.resolve({ id, object: "model", created: 1, owned_by: "any" }),
  };
  store: OpenedDatabase | undefined;
  app: PlatformApp | undefined;
  turns: TurnService | undefined;
  stored: ChatServices | undefined;
  /** As the next process does when it starts. */
  closeLost: () => Promise<number> = () => Promise.resolve(0);
  defaultModel: string | null = MODEL;
  /** Requests whose callers are still there. */
  openAnswers = 0;

  /** An upstream that speaks the chat dialect, unless the test says otherwise. */
  override place(
    name: string,
    play?: (far: ScriptedCall) => void,
    rest: Partial<Candidate> = {},
  ): ReturnType<HostStage["place"]> {
    return super.place(name, play, { protocols: ["chat"], ...rest });
  }

  async openChat({
    open = openMemoryStore,
    line,
    host,
    origins = [],
    wrap = (log) => log,
    ...deps
  }: ChatSetting = {}): Promise<void> {
    const store = await open();
    this.store = store;
    for (const user of ["usr_1", "usr_2", "usr_viewer"]) await insertUser(store, user);
    for (const project of [PROJECT, "prj_2"]) await insertProject(store, project, "usr_1");
    await this.open({ models: this.models, ...host });
    const { host: inference } = this;
    if (inference === undefined) throw new Error("not open");
    const { models, log } = this;
    const access = new ProjectAccess(fixedMemberships(roleIn));
    const ids = systemIds(() => this.clock.now());
    const parts = { ...store, access, clock: this.clock, ids };
    const chat = createChatServices({ ...parts, membership: aloneOn(ids.next("incarnation")) });
    this.closeLost = () =>
      createChatServices({ ...parts, membership: aloneOn(ids.next("incarnation")) }).turnLog.closeLost();
    this.turns = new TurnService({
      pipeline: inference.pipeline,
      turns: wrap(chat.turnLog),
      sessions: chat.chatSessions,
      models,
      locks: new SessionLocks(line),
      counters: this.counters,
      onLeave: "cancel",
      flushMs: 10,
      clock: this.clock,
      log,
      ...deps,
    });
    this.stored = chat;
    const sessions = { ...chat, access };
    const { admission, pace, owners } = inference;
    const { maxBodyBytes } = DEFAULT_LIMITS;
    const chatTurns = this.turns;
    const turns = { chatTurns, access, admission, pace, owners, maxBodyBytes, clock: this.clock };
    await this.#serve({ sessions, turns, allowedOrigins: origins });
  }

  async closeChat(): Promise<void> {
    this.app?.server.closeAllConnections();
    await this.app?.close();
    await this.close();
    await this.turns?.close();
    await this.store?.close();
  }

  get platformUrl(): string {
    return `http://127.0.0.1:${(this.app?.server.address() as AddressInfo | null)?.port}`;
  }

  ask(path: string, body: object, asked: Asked = {}): Promise<Response> {
    const { user = "usr_1", project = PROJECT, session = null, headers = {}, signal = null } = asked;
    return fetch(`${this.platformUrl}${path}`, {
      method: "POST",
      signal,
      headers: {
        authorization: `Bearer ${user}`,
        "content-type": "application/json",
        ...(project === null ? {} : { "service-project-id": project }),
        ...(session === null ? {} : { "service-session-id": session }),
        ...headers,
      },
      body: JSON.stringify(body),
    });
  }

  /** A turn of the responses route, read to its end. */
  async say(text: string, asked: Asked & { readonly body?: object } = {}): Promise<Told> {
    const body = { messages: [{ role: "user", content: text }], ...asked.body };
    return readTold(await this.ask("/v1/chat/responses", body, asked));
  }

  /** The same in the chat dialect. */
  async sayChat(text: string, asked: Asked & { readonly body?: object } = {}): Promise<Told> {
    const body = { messages: [{ role: "user", content: text }], ...asked.body };
    return readTold(await this.ask("/v1/chat/completions", body, asked));
  }

  /** A turn whose answer is read while it comes. */
  async sayOpen(
    text: string,
    asked: Asked & { readonly body?: object; readonly path?: string } = {},
  ): Promise<OpenAnswer> {
    const body = { messages: [{ role: "user", content: text }], ...asked.body };
    return new OpenAnswer(await this.ask(asked.path ?? "/v1/chat/responses", body, asked));
  }

  /** What is stored and counts, in order, with the status of what is not whole. */
  async history(session: string | null): Promise<string[]> {
    const items = await this.items(session);
    return items.filter(({ status }) => status !== "superseded").map(toldItem);
  }

  async items(session: string | null): Promise<StoredItem[]> {
    const rows = this.store?.db.selectFrom("chat_item").select(["status", "item"]).orderBy("position");
    const found = await rows?.where("session_id", "=", session ?? "").execute();
    return (found ?? []).map(({ status, item }) => ({ status, item: JSON.parse(item) as ResponsesItem }));
  }

  /** Of all sessions. */
  async sessionIds(): Promise<string[]> {
    const rows = await this.store?.db.selectFrom("chat_session").select("id").orderBy("id").execute();
    return (rows ?? []).map(({ id }) => id);
  }

  async #resolve(name: string): Promise<{ name: string; candidates: readonly Candidate[] }> {
    if (name.startsWith("no/")) throw new DomainError("model_not_found", "There is no such model.", { param: "model" });
    return { name, candidates: this.candidates };
  }

  async #serve(services: ChatRouteServices): Promise<void> {
    const authenticate = (async (authorization: string | undefined) => {
      const user = authorization?.replace(/^Bearer /, "");
      if (!user?.startsWith("usr_")) throw new DomainError("invalid_credential", "Sign in.");
      return asUser(user);
    }) as Authenticate;
    this.app = createPlatformHost({
      ids: systemIds(() => this.clock.now()),
      log: pino({ level: "silent" }),
      authenticate,
      requests: new RequestTally(),
      document: { publicUrl: "http://127.0.0.1", inferencePaths: {} },
      health: { publicJwks: () => ({ keys: [] }), ready: async () => undefined },
      routes: (routes) => registerChatRoutes(routes, services),
    });
    this.app.server.on("request", (_request, response) => {
      this.openAnswers++;
      response.once("close", () => this.openAnswers--);
    });
    await this.app.ready();
    await listen(this.app.server, { host: "127.0.0.1", port: 0, setting: "test" });
  }
}

interface StoredItem {
  readonly status: string;
  readonly item: ResponsesItem;
}

function toldItem({ status, item }: StoredItem): string {
  const said = itemTypeOf(item) === "message" ? `${roleOf(item)}: ${textOf(item)}` : itemTypeOf(item);
  return status === "completed" ? said : `${said} (${status})`;
}

function roleIn(project: string, user: string): Role | null {
  if (project !== PROJECT) return null;
  return user === "usr_viewer" ? "viewer" : user === "usr_3" ? null : "owner";
}

export async function readTold(response: Response): Promise<Told> {
  const text = await response.text();
  const { status, headers } = response;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  const events = isStream ? eventsOf(text) : [JSON.parse(text) as unknown];
  return { status, headers, session: headers.get("service-session-id"), text, events };
}

/** What the upstream was sent. */
export async function bodyOf(
  upstream: { readonly calls: readonly ScriptedCall[] },
  at = upstream.calls.length - 1,
): Promise<Record<string, unknown>> {
  const call = upstream.calls[at];
  if (call === undefined) throw new Error(`no call ${at}`);
  return JSON.parse((await call.request).body.toString("utf8")) as Record<string, unknown>;
}

/** An answer that is read while it comes. */
export class OpenAnswer {
  readonly response: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  text = "";

  constructor(response: Response) {
    this.response = response;
    if (response.body === null) throw new Error("no body");
    this.#reader = response.body.getReader();
  }

  get session(): string | null {
    return this.response.headers.get("service-session-id");
  }

  async until(text: string): Promise<void> {
    while (!this.text.includes(text)) {
      if (!(await this.#more())) throw new Error(`the answer ended without ${text}: ${this.text}`);
    }
  }

  /** @returns every event. */
  async end(): Promise<unknown[]> {
    while (await this.#more());
    return eventsOf(this.text);
  }

  async leave(): Promise<void> {
    await this.#reader.cancel();
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    if (!done) this.text += Buffer.from(value).toString("utf8");
    return !done;
  }
}
