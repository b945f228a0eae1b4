import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { removeExpired } from "../../installation/process/retention.ts";
import { STORES } from "../../testing.fixture.ts";
import { chatRetentions } from "../chat-room.ts";
import { ANN, ANSWERED, asks, ChatLogStage, LEFT, says, scopeOf } from "../store/chat-log.fixture.ts";

const DAY_MS = 24 * 3_600_000;

describe.each(STORES)("sessions on $name", ({ open }) => {
  let stage: ChatLogStage;
  beforeEach(async () => {
    stage = await ChatLogStage.open(open);
  });
  afterEach(() => stage.close());

  const ids = async (): Promise<string[]> => {
    const { sessions } = await stage.chat.chatSessions.list(ANN, { query: "", after: null, limit: 100 });
    return sessions.map(({ id }) => id);
  };
  const rows = async (table: "chat_session" | "chat_turn" | "chat_item"): Promise<number> =>
    (
      await stage.store.db
        .selectFrom(table)
        .select((eb) => eb.lit(1).as("one"))
        .execute()
    ).length;

  describe("opened by /new", () => {
    const fresh = { model: "a/b", openedFrom: null };

    test("are the same for repeats within ten seconds, and new after that", async () => {
      const first = await stage.chat.chatSessions.open(ANN, fresh);
      stage.clock.advance(10_000);
      expect(await stage.chat.chatSessions.open(ANN, fresh)).toEqual(first);
      stage.clock.advance(1);
      expect((await stage.chat.chatSessions.open(ANN, fresh)).id).not.toBe(first.id);
    });

    test("are the same for simultaneous repeats", async () => {
      const opened = await Promise.all([1, 2, 3, 4].map(() => stage.chat.chatSessions.open(ANN, fresh)));
      expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
    });

    test("are new once anything was said in the first, even without a response", async () => {
      const first = await stage.chat.chatSessions.open(ANN, fresh);
      await stage.turn(first.id, "hello", { ...LEFT, items: [] });
      expect((await stage.chat.chatSessions.open(ANN, fresh)).id).not.toBe(first.id);
    });

    test("are separate for another originating session, user or project", async () => {
      const opened = [
        await stage.chat.chatSessions.open(ANN, fresh),
        await stage.chat.chatSessions.open(ANN, { ...fresh, openedFrom: "ses_1" }),
        await stage.chat.chatSessions.open(scopeOf("prj_1", "usr_ben"), fresh),
        await stage.chat.chatSessions.open(scopeOf("prj_2", "usr_ann"), fresh),
      ];
      expect(new Set(opened.map(({ id }) => id)).size).toBe(4);
    });

    test("are never a session that a first turn opened", async () => {
      const { sessionId } = await stage.begin(null, asks("hello"));
      expect((await stage.chat.chatSessions.open(ANN, fresh)).id).not.toBe(sessionId);
    });

    test("are new after the first was deleted", async () => {
      const first = await stage.chat.chatSessions.open(ANN, fresh);
      await stage.chat.chatSessions.delete(ANN, first.id);
      expect((await stage.chat.chatSessions.open(ANN, fresh)).id).not.toBe(first.id);
    });
  });

  test("are titled after their first question, once (open-webui#13496, #16508)", async () => {
    const { id } = await stage.chat.chatSessions.open(ANN, { model: null, openedFrom: null });
    expect(await stage.chat.chatSessions.require(ANN, id)).toMatchObject({ title: "", model: null });
    await stage.turn(id, "the first one");
    await stage.turn(id, "the second one");
    expect(await stage.chat.chatSessions.require(ANN, id)).toMatchObject({
      title: "the first one",
      model: "node/model",
    });
  });

  test("are deleted in batches, and the rest is deleted later if the process dies in between", async () => {
    const id = await stage.turn(null, "hello", { items: Array.from({ length: 450 }, () => says("x")) });
    const kept = await stage.turn(null, "kept");
    const session = await stage.chat.chatSessions.require(ANN, id);
    await stage.store.db.updateTable("chat_session").set({ deleted_at: 1 }).where("id", "=", session.id).execute();
    expect(await ids()).toEqual([kept]);
    for (const retention of chatRetentions(stage.chat.chatRemoval, undefined, stage.clock)) {
      await removeExpired(retention);
    }
    expect([await rows("chat_session"), await rows("chat_turn"), await rows("chat_item")]).toEqual([1, 1, 2]);
  });

  test("are kept forever, unless a retention is configured", async () => {
    const old = await stage.turn(null, "old");
    const answering = await stage.begin(null, asks("answering for days"));
    stage.clock.advance(30 * DAY_MS);
    const [recent, busy] = [await stage.turn(null, "recent"), answering.sessionId];
    const apply = async (days: number | undefined): Promise<void> => {
      const [sessions] = chatRetentions(stage.chat.chatRemoval, days, stage.clock);
      await removeExpired(sessions);
    };
    await apply(undefined);
    await apply(30);
    expect((await ids()).toSorted()).toEqual([old, recent, busy].toSorted());
    stage.clock.advance(1);
    await apply(30);
    expect((await ids()).toSorted()).toEqual([recent, busy].toSorted());
  });

  test("are all deleted when they expire, however many there are", async () => {
    for (let n = 0; n < 45; n++) await stage.turn(null, `old ${n}`);
    stage.clock.advance(31 * DAY_MS);
    const [sessions] = chatRetentions(stage.chat.chatRemoval, 30, stage.clock);
    expect(await removeExpired(sessions)).toBe(45 * 4);
    expect(await ids()).toEqual([]);
  });

  test("are deleted with their project, and only if it is being deleted", async () => {
    const id = await stage.turn(null, "hello");
    const other = await stage.turn(null, "other");
    const remove = (): Promise<void> => stage.chat.chatRemoval.removeAll("prj_1", new AbortController().signal);
    await remove();
    expect((await ids()).toSorted()).toEqual([id, other].toSorted());
    await stage.store.db.updateTable("project").set({ deleting_since: 1 }).where("id", "=", "prj_1").execute();
    await remove();
    expect([await rows("chat_session"), await rows("chat_turn"), await rows("chat_item")]).toEqual([0, 0, 0]);
  });

  test("are deleted with the project's row as well", async () => {
    await stage.turn(null, "hello");
    await stage.store.db.deleteFrom("project").where("id", "=", "prj_1").execute();
    expect([await rows("chat_session"), await rows("chat_turn"), await rows("chat_item")]).toEqual([0, 0, 0]);
  });

  test("that are deleted while a response is running lose that response too", async () => {
    const { sessionId, turnId } = await stage.begin(null, asks("hello"));
    await stage.store.db.updateTable("chat_session").set({ deleted_at: 1 }).where("id", "=", sessionId).execute();
    await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")] });
    await stage.chat.chatRemoval.removeMarked(10);
    await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")] });
    expect(await rows("chat_item")).toBe(0);
  });

  test("drop after a day what they store for retries", async () => {
    const { turnId } = await stage.begin(null, asks("hello"), { idempotencyKey: "k" });
    await stage.chat.turnLog.finish(turnId, { ...ANSWERED, items: [says("yes")], response: { id: "resp_1" } });
    const forget = async (): Promise<(string | null)[]> => {
      await stage.chat.chatRemoval.forgetAnswers(100);
      const turns = await stage.store.db.selectFrom("chat_turn").select("response").execute();
      return turns.map(({ response }) => response);
    };
    expect(await forget()).toEqual(['{"id":"resp_1"}']);
    stage.clock.advance(DAY_MS + 1);
    expect(await forget()).toEqual([null]);
  });

  test("store no response for a turn that cannot be retried", async () => {
    await stage.turn(null, "hello", { response: { id: "resp_1" } });
    const turns = await stage.store.db.selectFrom("chat_turn").select("response").execute();
    expect(turns).toEqual([{ response: null }]);
  });
});
