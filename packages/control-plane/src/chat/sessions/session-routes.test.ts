import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { STORES } from "../../testing.fixture.ts";
import { ChatStage, PROJECT } from "../chat-stage.fixture.ts";
import { ANSWERED, asks, says, scopeOf } from "../store/chat-log.fixture.ts";
import type { TurnLog } from "../store/turn-log.ts";

const sessionSchema = z.looseObject({
  id: z.string(),
  title: z.string(),
  updatedAt: z.string(),
  messageCount: z.number(),
});
const listSchema = z.object({ sessions: z.array(sessionSchema), nextPageToken: z.string() });
const messageSchema = z.looseObject({
  position: z.number(),
  content: z.string(),
  status: z.string(),
  role: z.string(),
});
const pageSchema = z.object({ messages: z.array(messageSchema), nextPageToken: z.string() });

describe.each(STORES)("stored sessions over HTTP on $name", ({ open }) => {
  const scope = scopeOf(PROJECT, "usr_1");
  let stage: ChatStage;
  let turnLog: TurnLog;

  beforeEach(async () => {
    stage = new ChatStage();
    await stage.openChat({ open });
    const { stored } = stage;
    if (stored === undefined) throw new Error("not open");
    turnLog = stored.turnLog;
  });
  afterEach(() => stage.closeChat());

  const begin = async (
    session: string | null,
    text: string,
    by = scope,
  ): Promise<{ sessionId: string; turnId: string }> => {
    const own = {
      dialect: "responses",
      model: "a/b",
      contextTokens: 9000,
      requestHash: "h",
      idempotencyKey: null,
    } as const;
    const begun = await turnLog.begin(by, session, { turn: asks(text), ...own });
    if (begun.replay !== null) throw new Error("replayed");
    return begun;
  };
  const turn = async (session: string | null, text: string, by = scope): Promise<string> => {
    const { sessionId, turnId } = await begin(session, text, by);
    await turnLog.finish(turnId, { ...ANSWERED, items: [says(`About ${text}`)] });
    stage.clock.advance(1000);
    return sessionId;
  };

  interface Sent {
    readonly method?: string;
    readonly user?: string;
    readonly project?: string | null;
    readonly body?: unknown;
  }
  const send = (
    path: string,
    { method = "GET", user = "usr_1", project = PROJECT, body }: Sent = {},
  ): Promise<Response> =>
    fetch(`${stage.platformUrl}/v1/chat/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${user}`,
        ...(project === null ? {} : { "service-project-id": project }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const read = async <T>(path: string, schema: z.ZodType<T>, sent: Sent = {}): Promise<T> => {
    const response = await send(path, sent);
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.anything()]);
    return schema.parse(JSON.parse(text));
  };
  const refused = async (path: string, sent: Sent = {}): Promise<[number, unknown]> => {
    const response = await send(path, sent);
    const { error } = z.object({ error: z.looseObject({ code: z.string() }) }).parse(await response.json());
    return [response.status, error.code];
  };

  test("return an empty history, and no error, if no session is given (docs/interface.md §4.1)", async () => {
    for (const path of ["history", "history?sessionId="]) {
      expect(await (await send(path)).json()).toEqual({ messages: [] });
    }
  });

  test("return a history with the role and content of each message, in order", async () => {
    const id = await turn(null, 'one "quoted" <b>\n\u0000');
    await turn(id, "two");
    expect(await (await send(`history?sessionId=${id}`)).json()).toEqual({
      messages: [
        { role: "user", content: 'one "quoted" <b>\n\u0000' },
        { role: "assistant", content: 'About one "quoted" <b>\n\u0000' },
        { role: "user", content: "two" },
        { role: "assistant", content: "About two" },
      ],
    });
  });

  test("are accessible only to their user in their project; everything else is 404", async () => {
    const id = await turn(null, "mine");
    const calls: [string, Sent][] = [
      [`history?sessionId=${id}`, {}],
      [`sessions/${id}`, {}],
      [`sessions/${id}/messages`, {}],
      [`sessions/${id}/export`, {}],
      [`sessions/${id}`, { method: "PATCH", body: { title: "Yours" } }],
      [`sessions/${id}`, { method: "DELETE" }],
      [`sessions/${id}/turns/trn_1`, { method: "DELETE" }],
    ];
    for (const [path, sent] of calls) {
      expect(await refused(path, { ...sent, user: "usr_2" })).toEqual([404, "session_not_found"]);
      expect(await refused(path.replace(id, `${id}x`), sent)).toEqual([404, "session_not_found"]);
    }
    expect(await read("sessions", listSchema, { user: "usr_2" })).toEqual({ sessions: [], nextPageToken: "" });
    expect((await read(`sessions/${id}`, sessionSchema)).title).toBe("mine");
  });

  const told = async (id: string): Promise<string[]> =>
    (await read(`sessions/${id}/messages`, pageSchema)).messages.map(({ content }) => content);
  const newestTurn = async (id: string): Promise<string> => {
    const { messages } = await read(`sessions/${id}/messages?order=desc&pageSize=1`, pageSchema);
    return String(messages[0]?.["turnId"]);
  };
  const removeTurn = (id: string, turnId: string): [string, Sent] => [
    `sessions/${id}/turns/${turnId}`,
    { method: "DELETE" },
  ];

  test("lose their newest turn permanently when it is deleted, and the turn before it is then the newest", async () => {
    const id = await turn(null, "one");
    await turn(id, "two");
    expect(await (await send(...removeTurn(id, await newestTurn(id)))).json()).toEqual({});
    expect(await told(id)).toEqual(["one", "About one"]);
    expect(await (await send(`sessions/${id}/export`)).text()).not.toContain("two");
    expect((await read(`sessions/${id}`, sessionSchema)).messageCount).toBe(2);
    expect((await turnLog.lastTurn(scope, id))?.turn.text).toBe("one");
    await turn(id, "three");
    expect(await told(id)).toEqual(["one", "About one", "three", "About three"]);
    for (let i = 0; i < 2; i++) expect((await send(...removeTurn(id, await newestTurn(id)))).status).toBe(200);
    expect(await read(`sessions/${id}`, sessionSchema)).toMatchObject({ messageCount: 0, title: "" });
    expect(await turnLog.lastTurn(scope, id)).toBeNull();
    await turn(id, "four");
    expect(await told(id)).toEqual(["four", "About four"]);
  });

  test("lose a deleted turn together with what it superseded and what was withdrawn since", async () => {
    const id = await turn(null, "one");
    const first = await begin(id, "two");
    await turnLog.finish(first.turnId, { ...ANSWERED, status: "failed", items: [] });
    await turn(id, "two");
    const { turnId } = await begin(id, "a picture");
    await turnLog.finish(turnId, { ...ANSWERED, status: "failed", items: [], withdrawn: true });
    expect((await send(...removeTurn(id, await newestTurn(id)))).status).toBe(200);
    const exported = await (await send(`sessions/${id}/export`)).text();
    for (const text of ["two", "a picture"]) expect(exported).not.toContain(text);
    expect((await turnLog.lastTurn(scope, id))?.turn.text).toBe("one");
  });

  test("do not allow deletion of any other turn, or of one that is running", async () => {
    const id = await turn(null, "one");
    const first = await newestTurn(id);
    await turn(id, "two");
    for (const turnId of [first, "trn_unknown"]) {
      expect(await refused(...removeTurn(id, turnId))).toEqual([400, "invalid_request"]);
    }
    const other = await turn(null, "elsewhere");
    expect(await refused(...removeTurn(id, await newestTurn(other)))).toEqual([400, "invalid_request"]);
    const { turnId } = await begin(id, "three");
    expect(await refused(...removeTurn(id, turnId))).toEqual([409, "session_busy"]);
    await turnLog.finish(turnId, { ...ANSWERED, items: [says("Yes.")] });
    expect((await send(...removeTurn(id, turnId))).status).toBe(200);
    expect(await told(id)).toEqual(["one", "About one", "two", "About two"]);
  });

  test("return 400 without a project, 403 for another project, and 401 without a token", async () => {
    expect(await refused("sessions", { project: null })).toEqual([400, "missing_project_header"]);
    expect(await refused("history", { project: null })).toEqual([400, "missing_project_header"]);
    expect(await refused("sessions", { project: "prj_unknown" })).toEqual([403, "permission_denied"]);
    expect(await refused("sessions", { user: "nobody" })).toEqual([401, "invalid_credential"]);
  });

  test("are readable by viewers who own them, but cannot be changed by them", async () => {
    const id = await turn(null, "from when I was a member", scopeOf(PROJECT, "usr_viewer"));
    const as = { user: "usr_viewer" };
    expect((await read("sessions", listSchema, as)).sessions).toHaveLength(1);
    expect(await refused(`sessions/${id}`, { ...as, method: "DELETE" })).toEqual([403, "permission_denied"]);
    expect(await refused(`sessions/${id}`, { ...as, method: "PATCH", body: {} })).toEqual([403, "permission_denied"]);
    expect(await refused(`sessions/${id}/turns/trn_1`, { ...as, method: "DELETE" })).toEqual([
      403,
      "permission_denied",
    ]);
  });

  test("are listed by latest activity, and the pages contain each session once", async () => {
    const ids: string[] = [];
    for (const text of ["one", "two", "three", "four", "five"]) ids.push(await turn(null, text));
    await turn(ids[1] ?? "", "two again");
    const seen: string[] = [];
    let token = "";
    do {
      const page = await read(`sessions?pageSize=2&pageToken=${token}`, listSchema);
      seen.push(...page.sessions.map(({ title }) => title));
      token = page.nextPageToken;
    } while (token !== "");
    expect(seen).toEqual(["two", "five", "four", "three", "one"]);
    expect(await refused("sessions?pageToken=nonsense")).toEqual([400, "invalid_request"]);
  });

  test("are listed once each if their times are equal", async () => {
    const ids = await Promise.all(["a", "b", "c"].map(async (text) => (await begin(null, text)).sessionId));
    const first = await read("sessions?pageSize=2", listSchema);
    const second = await read(`sessions?pageSize=2&pageToken=${first.nextPageToken}`, listSchema);
    const seen = [...first.sessions, ...second.sessions].map(({ id }) => id);
    expect(seen).toEqual(ids.toSorted().toReversed());
  });

  test("are found by parts of titles and texts in any case, with every character taken literally", async () => {
    const straße = await turn(null, "Wo ist die STRASSE nach Kölle?");
    const percent = await turn(null, "100% of_it! 'or 1=1");
    const found = async (query: string): Promise<string[]> =>
      (await read(`sessions?query=${encodeURIComponent(query)}`, listSchema)).sessions.map(({ id }) => id);
    for (const query of ["strasse", "KÖLLE", "about wo"]) expect(await found(query)).toEqual([straße]);
    for (const query of ["100%", "of_it", "t!", "'or 1=1"]) expect(await found(query)).toEqual([percent]);
    for (const query of ["1%0", "o__it", "nowhere"]) expect(await found(query)).toEqual([]);
    await read(`sessions/${percent}`, sessionSchema, { method: "PATCH", body: { title: "Ｆｕｌｌ ｗｉｄｔｈ" } });
    expect(await found("full width")).toEqual([percent]);
    expect(await found("  ")).toEqual([percent, straße]);
  });

  test("are not found by the texts of other users, or by superseded ones", async () => {
    await turn(null, "secret", scopeOf(PROJECT, "usr_2"));
    const { sessionId, turnId } = await begin(null, "hello");
    const left = { status: "incomplete", why: "client_left", usage: null, response: null } as const;
    await turnLog.finish(turnId, { ...left, items: [says("secret")] });
    await turn(sessionId, "hello");
    expect((await read("sessions?query=secret", listSchema)).sessions).toEqual([]);
  });

  test("can be searched page by page", async () => {
    for (const text of ["cat 1", "dog", "cat 2", "cat 3"]) await turn(null, text);
    const first = await read("sessions?query=cat&pageSize=2", listSchema);
    expect(first.sessions.map(({ title }) => title)).toEqual(["cat 3", "cat 2"]);
    const second = await read(`sessions?query=cat&pageSize=2&pageToken=${first.nextPageToken}`, listSchema);
    expect(second).toMatchObject({ sessions: [{ title: "cat 1" }], nextPageToken: "" });
  });

  test("keep a title set by their user, and renaming is not an activity (open-webui#13496)", async () => {
    const id = await turn(null, "first");
    const other = await turn(null, "second");
    const metadata = { folder: "työ" };
    const changed = await read(`sessions/${id}`, sessionSchema, {
      method: "PATCH",
      body: { title: " Mine ", metadata },
    });
    expect(changed).toMatchObject({ title: "Mine", metadata });
    expect((await read("sessions", listSchema)).sessions.map((session) => session.id)).toEqual([other, id]);
    await turn(id, "third");
    expect(await read(`sessions/${id}`, sessionSchema)).toMatchObject({ title: "Mine", metadata, messageCount: 4 });
    await read(`sessions/${id}`, sessionSchema, { method: "PATCH", body: { metadata: {} } });
    expect(await read(`sessions/${id}`, sessionSchema)).toMatchObject({ title: "Mine", metadata: {} });
  });

  test.each([
    [{ title: "" }, "title"],
    [{ title: "a\nb" }, "title"],
    [{ titel: "misspelt" }, "titel"],
    [{ metadata: { a: 1 } }, "metadata.a"],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ""])) }, "metadata"],
  ])("reject the change %j", async (body, param) => {
    const id = await turn(null, "hello");
    const response = await send(`sessions/${id}`, { method: "PATCH", body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "invalid_request", param } });
  });

  test("are deleted with all their rows", async () => {
    const id = await turn(null, "hello");
    const kept = await turn(null, "kept");
    expect(await read(`sessions/${id}`, z.strictObject({}), { method: "DELETE" })).toEqual({});
    for (const path of [`sessions/${id}`, `sessions/${id}/messages`, `history?sessionId=${id}`]) {
      expect(await refused(path)).toEqual([404, "session_not_found"]);
    }
    for (const table of ["chat_item", "chat_turn"] as const) {
      const rows = await stage.store?.db.selectFrom(table).select("session_id").distinct().execute();
      expect(rows).toEqual([{ session_id: kept }]);
    }
  });

  test("cannot be deleted while a response is running (open-webui#26668)", async () => {
    const { sessionId, turnId } = await begin(null, "hello");
    expect(await refused(`sessions/${sessionId}`, { method: "DELETE" })).toEqual([409, "session_busy"]);
    await turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")] });
    await read(`sessions/${sessionId}`, z.strictObject({}), { method: "DELETE" });
  });

  test("return messages in both directions, page by page, and those since a position", async () => {
    const id = await turn(null, "one");
    for (const text of ["two", "three"]) await turn(id, text);
    const all = ["one", "About one", "two", "About two", "three", "About three"];
    for (const order of ["asc", "desc"]) {
      const seen: string[] = [];
      let token = "";
      do {
        const page = await read(`sessions/${id}/messages?order=${order}&pageSize=4&pageToken=${token}`, pageSchema);
        seen.push(...page.messages.map(({ content }) => content));
        token = page.nextPageToken;
      } while (token !== "");
      expect(seen).toEqual(order === "asc" ? all : all.toReversed());
    }
    const contents = async (query: string): Promise<string[]> =>
      (await read(`sessions/${id}/messages?${query}`, pageSchema)).messages.map(({ content }) => content);
    expect(await contents("after=4")).toEqual(["three", "About three"]);
    expect(await contents("before=3")).toEqual(["one", "About one"]);
    expect(await contents("order=desc&before=3&pageSize=1")).toEqual(["About one"]);
    expect(await contents("after=6")).toEqual([]);
    expect(await refused(`sessions/${id}/messages?pageToken=MTpub25l`)).toEqual([400, "invalid_request"]);
  });

  test("show the response so far at the end while it runs, for pages in either order", async () => {
    const id = await turn(null, "one");
    const { turnId } = await begin(id, "two");
    const partial = [says("thinking", { id: "rs" }), says("half", { id: "msg_x", status: "incomplete" })];
    await turnLog.flush(turnId, partial);
    for (const order of ["asc", "desc"]) {
      for (const pageSize of [1, 2, 3, 10]) {
        const seen: string[] = [];
        let token = "";
        do {
          const path = `sessions/${id}/messages?order=${order}&pageSize=${pageSize}&pageToken=${token}`;
          const page = await read(path, pageSchema);
          seen.push(...page.messages.map(({ content }) => content));
          token = page.nextPageToken;
        } while (token !== "");
        const all = ["one", "About one", "two", "thinking", "half"];
        expect(seen).toEqual(order === "asc" ? all : all.toReversed());
      }
    }
    const newest = await read(`sessions/${id}/messages?order=desc&pageSize=1`, pageSchema);
    expect(newest.messages[0]).toMatchObject({ id: "msg_x", turnId, status: "in_progress", role: "assistant" });
  });

  test("show on reload whether a turn is running or was stopped", async () => {
    const id = await turn(null, "one");
    const states = z.object({ running: z.boolean() });
    const listed = z.object({ sessions: z.array(states) });
    const seen = async () => ({
      session: (await read(`sessions/${id}`, states)).running,
      list: (await read("sessions", listed)).sessions[0]?.running,
      newest: (await read(`sessions/${id}/messages?order=desc&pageSize=1`, pageSchema)).messages[0]?.status,
    });
    expect(await seen()).toEqual({ session: false, list: false, newest: "completed" });
    const { turnId } = await begin(id, "two");
    expect(await seen()).toEqual({ session: true, list: true, newest: "completed" });
    const items = [says("half", { id: "msg_x", status: "incomplete" })];
    await turnLog.flush(turnId, items);
    expect(await seen()).toEqual({ session: true, list: true, newest: "in_progress" });
    await turnLog.finish(turnId, { status: "incomplete", why: "stopped", items, usage: null, response: null });
    expect(await seen()).toEqual({ session: false, list: false, newest: "incomplete" });
  });

  test("return large messages completely, in shorter pages", async () => {
    const id = await turn(null, "x".repeat(200_000));
    for (const text of ["y".repeat(200_000), "z"]) await turn(id, text);
    const lengths: number[] = [];
    let token = "";
    do {
      const page = await read(`sessions/${id}/messages?pageToken=${token}`, pageSchema);
      expect(page.messages.length).toBeLessThan(6);
      lengths.push(...page.messages.map(({ content }) => content.length));
      token = page.nextPageToken;
    } while (token !== "");
    expect(lengths).toEqual([200_000, 200_006, 200_000, 200_006, 1, 7]);
    const { messages } = await read(`sessions/${id}/export`, z.object({ messages: z.array(messageSchema) }));
    expect(messages.map(({ content }) => content.length)).toEqual(lengths);
  });

  test("are exported completely as one JSON file", async () => {
    const id = await turn(null, "hello");
    const response = await send(`sessions/${id}/export`);
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${id}.json"`);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const { messages } = await read(`sessions/${id}/messages`, pageSchema);
    expect(await response.json()).toEqual({ session: await read(`sessions/${id}`, z.unknown()), messages });
  });
});
