import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { migrate } from "../../installation/db/migrations/migrate.ts";
import { openDatabase } from "../../installation/db/open.ts";
import { ANN, ChatLogStage, calls, gives, LEFT } from "./chat-log.fixture.ts";

test("no chat statement scans a whole table", async () => {
  const statements = new Set<string>();
  const stage = await ChatLogStage.open(async () => {
    const store = openDatabase(
      { file: ":memory:" },
      { onStatement: (statement) => void statements.add(statement.sql) },
    );
    await migrate(store.db, { clock: new TestClock() });
    return store;
  });
  const { chatSessions, chatHistory, chatRemoval, turnLog } = stage.chat;
  const { id } = await chatSessions.open(ANN, { model: null, openedFrom: null });
  await stage.turn(id, "one", { items: [calls("c1")] });
  await stage.turn(id, gives(["c1", "x"]), { ...LEFT, items: [] });
  const { turnId } = await stage.begin(id, gives(["c1", "x"]), { idempotencyKey: "k" });
  await turnLog.flush(turnId, []);
  await stage.restarted(2).turnLog.closeLost();
  await turnLog.finish(turnId, { ...LEFT, items: [] });
  await turnLog.find(ANN, { idempotencyKey: "k", requestHash: "h" });
  await stage.turn(id, "two", { items: [] });
  await turnLog.lastTurn(ANN, id);
  for (const query of ["", "one"]) {
    for (const after of [null, { updatedAt: 1, id: "ses_1" }])
      await chatSessions.list(ANN, { query, after, limit: 10 });
  }
  await chatHistory.messages(ANN, id, { after: 0, before: 10, order: "desc", limit: 10 });
  await stage.history(id);
  await chatSessions.update(ANN, id, { title: "One" });
  const { items } = await chatHistory.messages(ANN, id, { after: null, before: null, order: "desc", limit: 1 });
  await chatSessions.deleteTurn(ANN, id, items[0]?.turnId ?? "");
  await chatRemoval.forgetAnswers(10);
  await chatRemoval.removeQuiet(1, 10);
  await chatRemoval.removeAll("prj_1", new AbortController().signal);
  await chatSessions.delete(ANN, id);

  const chats = [...statements].filter((text) => text.includes("chat_") && !/^(create|insert|alter)/.test(text));
  expect(chats.length).toBeGreaterThan(25);
  for (const text of chats) {
    const explained = await sql
      .raw<{ detail: string }>(`explain query plan ${text.replaceAll("?", "1")}`)
      .execute(stage.store.db);
    const plan = explained.rows.map(({ detail }) => detail);
    // Indexes of few rows may be read whole.
    const scans = plan.filter(
      (detail) => detail.startsWith("SCAN") && !/chat_(session_deleted|turn_open)_idx/.test(detail),
    );
    expect({ text, scans }).toEqual({ text, scans: [] });
  }
  await stage.close();
});
