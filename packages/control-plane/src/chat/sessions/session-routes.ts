import { Readable } from "node:stream";
import type { ChatMessage, ChatSession } from "@fairlead/protocol/chat";
import { DomainError } from "@fairlead/protocol/errors";
import type { FastifyReply } from "fastify";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { decodePageToken, encodePageToken, type PageQuery } from "../../http/requests/pagination.ts";
import { requirePrincipal } from "../../http/requests/require-principal.ts";
import { type ItemRange, isOutput, roleOf, type StoredItem, textOf } from "../items/chat-item.ts";
import { type SessionCursor, type SessionRecord, toChatSession } from "../items/chat-session.ts";
import { scopeOf } from "./chat-request.ts";
import type { SessionHistoryService } from "./session-history-service.ts";
import {
  deleteSession,
  deleteTurn,
  exportSession,
  getHistory,
  getSession,
  listMessages,
  listSessions,
  type MessagesQuery,
  updateSession,
} from "./session-route-schemas.ts";
import type { ChatSessionService } from "./session-service.ts";

/** A long list as JSON text, in chunks. Pure. */

/** @param head the other fields of the object. @param name of the list, which comes last. */
async function* jsonText(
  head: Readonly<Record<string, unknown>>,
  name: string,
  portions: AsyncIterable<readonly unknown[]>,
): AsyncGenerator<string> {
  const before = JSON.stringify(head).slice(0, -1);
  let separator = "";
  yield `${before}${before === "{" ? "" : ","}${JSON.stringify(name)}:[`;
  for await (const portion of portions) {
    if (portion.length === 0) continue;
    yield separator + portion.map((each) => JSON.stringify(each)).join(",");
    separator = ",";
  }
  yield "]}";
}

/** An item in its API form. Pure. */
function toChatMessage({ id, turnId, position, status, item, usage, createdAt }: StoredItem): ChatMessage {
  return {
    id,
    turnId,
    position,
    status,
    role: roleOf(item) ?? (isOutput(item) ? "tool" : "assistant"),
    content: textOf(item),
    item: { ...item },
    ...(usage === null ? {} : { usage }),
    createdAt: new Date(createdAt).toISOString(),
  };
}

export interface SessionRouteServices {
  readonly access: ProjectAccess;
  readonly chatSessions: ChatSessionService;
  readonly chatHistory: SessionHistoryService;
}

/** Stored chats (docs/interface.md §4.1: history; the other routes are additions). */
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

  app.delete("/v1/chat/sessions/:id/turns/:turnId", { onRequest, schema: deleteTurn }, async (request) => {
    const { id, turnId } = request.params;
    await chatSessions.deleteTurn(await scopeOf(access, request, "chat.use"), id, turnId);
    return {};
  });
}

/** Messages of a session. */
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

/** Streamed, to keep the event loop responsive for long sessions. */
function sendJson(reply: FastifyReply, text: AsyncIterable<string>): FastifyReply {
  return reply.type("application/json; charset=utf-8").send(Readable.from(text));
}

/** A page starts after the previous one, in the requested order. */
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
  return new DomainError("invalid_request", "`pageToken` was not returned by this list.", { param: "pageToken" });
}
