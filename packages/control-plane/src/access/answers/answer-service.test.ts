import type { AnswerClaim, RepeatableCall } from "@fairlead/inference/ports/kept-answers";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { removeExpired } from "../../installation/process/retention.ts";
import { insertProject, insertUser, STORES } from "../../testing.fixture.ts";
import { aesSealer } from "../auth/sealing/sealer.ts";
import { repeatRetentions } from "../repeats-room.ts";
import { ANSWER_KEEP_MS, AnswerService } from "./answer-service.ts";
import { answerStoreContract } from "./answer-store.contract.ts";
import { AnswerStore } from "./answer-store.ts";

for (const { name, open } of STORES) answerStoreContract(name, open);
describe.each(STORES)("stored responses for idempotent retries on $name", ({ open }) => {
  let store: OpenedDatabase;
  let clock: TestClock;
  const call: RepeatableCall = { projectId: "prj_1", callerId: "key_1", key: "k", fingerprint: "f" };
  const answer = {
    status: 200,
    headers: { "content-type": "application/json" },
    body: Buffer.from('{"text":"line\\nend","wörld":"\u{1F30D}"}\n\u0000'),
  };

  const sealer = aesSealer({ id: "mk_1", bytes: Buffer.alloc(32, 7) });
  const newService = (): AnswerService => {
    const answers = new AnswerStore(store.db);
    return new AnswerService({ answers, writes: answers, sealer, clock });
  };

  let service: AnswerService;
  beforeEach(async () => {
    store = await open();
    clock = new TestClock();
    await insertUser(store, "usr_1");
    await insertProject(store, "prj_1", "usr_1");
    service = newService();
  });

  afterEach(() => store.close());
  const run = async (own: Partial<RepeatableCall> = {}): Promise<AnswerClaim> => {
    const { claim } = await service.begin({ ...call, ...own });
    if (claim === null) throw new Error("it was kept");
    return claim;
  };

  test("are replayed byte for byte for a day, and not after that", async () => {
    const claim = await run();
    await claim.keep(answer);
    claim.release();
    expect(await service.begin(call)).toEqual({ kept: answer, claim: null });
    expect(await newService().begin(call)).toEqual({ kept: answer, claim: null });
    clock.advance(ANSWER_KEEP_MS);
    (await run()).release();
    const [, answers] = repeatRetentions(store.longReads, clock);
    expect(await removeExpired(answers)).toBe(1);
  });

  test("are sealed at rest", async () => {
    await (await run()).keep({ ...answer, body: Buffer.from("the secret text") });
    const { sealed } = await store.db.selectFrom("kept_answer").select("sealed").executeTakeFirstOrThrow();
    expect(sealed).not.toContain("secret");
    expect(sealed).not.toContain(Buffer.from("secret text").toString("base64url").slice(0, 8));
  });

  test("are not replayed for a different call with the same key, during the first call or after it", async () => {
    const claim = await run();
    await expect(service.begin({ ...call, fingerprint: "g" })).rejects.toMatchObject({ code: "idempotency_mismatch" });
    await claim.keep(answer);
    claim.release();
    await expect(service.begin({ ...call, fingerprint: "g" })).rejects.toMatchObject({ code: "idempotency_mismatch" });
  });

  test("let one of several simultaneous calls run, and ask the others to retry", async () => {
    const begun = await Promise.allSettled([1, 2, 3].map(() => service.begin(call)));
    expect(begun.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(begun[1]).toMatchObject({ reason: { code: "idempotency_in_progress", retryAfterSeconds: 2 } });
  });

  test("belong to one key of one caller", async () => {
    await (await run()).keep(answer);
    for (const other of [{ key: "k2" }, { callerId: "key_2" }]) (await run(other)).release();
  });

  test("free the key if nothing was stored or the process died during the call", async () => {
    (await run()).release();
    await run();
    service = newService();
    (await run()).release();
  });

  test("that were too long to store reject a retry instead of running the call again", async () => {
    const claim = await run();
    await claim.keep(null);
    claim.release();
    await expect(service.begin(call)).rejects.toMatchObject({ code: "already_exists", param: "Idempotency-Key" });
  });

  test("free the key if the store was unreachable", async () => {
    const away = { find: () => Promise.reject(new Error("away")) };
    const answers = new AnswerStore(store.db);
    let isAway = true;
    const flaky = {
      find: (...args: Parameters<AnswerStore["find"]>) => (isAway ? away.find() : answers.find(...args)),
    };
    const own = new AnswerService({
      answers: flaky as unknown as AnswerStore,
      writes: answers,
      sealer,
      clock,
    });
    await expect(own.begin(call)).rejects.toThrow("away");
    isAway = false;
    expect((await own.begin(call)).claim).not.toBeNull();
  });
});
