import { Readable } from "node:stream";
import type { ChatSession } from "@fairlead/protocol/chat";
import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply } from "fastify";
import type { ProjectAccess } from "../auth/access.ts";
import { decodePageToken, encodePageToken, type PageQuery } from "../http/pagination.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { requirePrincipal } from "../http/require-principal.ts";
import type { ItemRange } from "./chat-item.ts";
import { toChatMessage } from "./chat-message.ts";
import { scopeOf } from "./chat-request.ts";
import { type SessionCursor, type SessionRecord, toChatSession } from "./chat-session.ts";
import { jsonText } from "./json-text.ts";
import type { SessionHistoryService } from "./session-history-service.ts";
import {
  deleteSession,
  exportSession,
  getHistory,
  getSession,
  listMessages,
  listSessions,
  type MessagesQuery,
  updateSession,
} from "./session-route-schemas.ts";
import type { SessionService } from "./session-service.ts";

export interface SessionRouteServices {
  readonly access: ProjectAccess;
  readonly chatSessions: SessionService;
  readonly chatHistory: SessionHistoryService;
}

/** What is stored of chats (interface §4.1: history; the others are ours, design §4). */
export function registerSessionRoutes(app: PlatformApp, services: SessionRouteServices): void {
  const { access, chatSessions } = services;
  const onRequest = requirePrincipal("user");
  const told = (session: SessionRecord): ChatSession => toChatSession(session, chatSessions.isRunning(session));
  registerReading(app, services);

  app.get("/v1/chat/sessions", { onRequest, schema: listSessions }, async (request) => {
    const scope = await scopeOf(access, request, "chat.read");
    const { query, ...page } = request.query;
    const { sessions, next } = await chatSessions.list(scope, { query, after: cursorOf(page), limit: page.pageSize });
    return { sessions: sessions.map(told), nextPageToken: next === null ? "" : tokenOf(next) };
  });

  app.get("/v1/chat/sessions/:id", { onRequest, schema: getSession }, async (request) => {
    const scope = await scopeOf(access, request, "chat.read");
    return told(await chatSessions.require(scope, request.params.id));
  });

  app.patch("/v1/chat/sessions/:id", { onRequest, schema: updateSession }, async (request) => {
    const scope = await scopeOf(access, request, "chat.use");
    return told(await chatSessions.update(scope, request.params.id, request.body));
  });

  app.delete("/v1/chat/sessions/:id", { onRequest, schema: deleteSession }, async (request) => {
    await chatSessions.delete(await scopeOf(access, request, "chat.use"), request.params.id);
    return {};
  });
}

/** What was said in a session. */
function registerReading(app: PlatformApp, { access, chatHistory, chatSessions }: SessionRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/chat/history", { onRequest, schema: getHistory }, async (request, reply) => {
    const scope = await scopeOf(access, request, "chat.read");
    const { sessionId = "" } = request.query;
    if (sessionId === "") return { messages: [] };
    return sendJson(reply, jsonText({}, "messages", await chatHistory.history(scope, sessionId)));
  });

  app.get("/v1/chat/sessions/:id/messages", { onRequest, schema: listMessages }, async (request) => {
    const scope = await scopeOf(access, request, "chat.read");
    const { items, more } = await chatHistory.messages(scope, request.params.id, rangeOf(request.query));
    const last = more ? items.at(-1) : undefined;
    const nextPageToken = last === undefined ? "" : encodePageToken(String(last.position));
    return { messages: items.map(toChatMessage), nextPageToken };
  });

  app.get("/v1/chat/sessions/:id/export", { onRequest, schema: exportSession }, async (request, reply) => {
    const scope = await scopeOf(access, request, "chat.read");
    const { session, items } = await chatHistory.whole(scope, request.params.id, { withSuperseded: true });
    void reply.header("content-disposition", `attachment; filename="${session.id}.json"`);
    const told = toChatSession(session, chatSessions.isRunning(session));
    return sendJson(reply, jsonText({ session: told }, "messages", toldItems(items)));
  });
}

async function* toldItems(
  portions: AsyncIterable<readonly Parameters<typeof toChatMessage>[0][]>,
): AsyncGenerator<readonly object[]> {
  for await (const portion of portions) yield portion.map(toChatMessage);
}

/** As it is read, so that a long session holds nobody up (design §11). */
function sendJson(reply: FastifyReply, text: AsyncIterable<string>): FastifyReply {
  return reply.type("application/json; charset=utf-8").send(Readable.from(text));
}

/** A page goes on behind the last one's end, in the order that is asked for. */
function rangeOf({ order, after, before, pageSize, pageToken }: MessagesQuery): PageRange {
  const range = { order, after: after ?? null, before: before ?? null, limit: pageSize };
  if (pageToken === "") return range;
  const cursor = decodePageToken(pageToken);
  if (!/^\d{1,15}$/.test(cursor)) throw badToken();
  const position = Number(cursor);
  return { ...range, ...(order === "asc" ? { after: position } : { before: position }) };
}

type PageRange = Omit<ItemRange, "withSuperseded">;

function cursorOf({ pageToken }: PageQuery): SessionCursor | null {
  if (pageToken === "") return null;
  const [, updatedAt, id] = /^(\d{1,15})\.(.+)$/.exec(decodePageToken(pageToken)) ?? [];
  if (updatedAt === undefined || id === undefined) throw badToken();
  return { updatedAt: Number(updatedAt), id };
}

const tokenOf = ({ updatedAt, id }: SessionCursor): string => encodePageToken(`${updatedAt}.${id}`);

function badToken(): DomainError {
  return new DomainError("invalid_request", "`pageToken` is not one that this list gave out.", { param: "pageToken" });
}
