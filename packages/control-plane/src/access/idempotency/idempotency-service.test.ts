import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { removeExpired } from "../../installation/process/retention.ts";
import { MembershipService } from "../../people/members/membership-service.ts";
import type { ProjectRecord } from "../../people/projects/project.ts";
import { ProjectService } from "../../people/projects/project-service.ts";
import { projectStores } from "../../people/projects/project-stores.ts";
import { insertUser, STORES } from "../../testing.fixture.ts";
import { AuditService } from "../audit/audit-service.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { repeatRetentions } from "../repeats-room.ts";
import { type Created, IDEMPOTENCY_KEEP_MS, IdempotencyService } from "./idempotency-service.ts";
import { idempotencyStoreContract } from "./idempotency-store.contract.ts";
import type { Once } from "./once.ts";

for (const { name, open } of STORES) idempotencyStoreContract(name, open);

interface Answer {
  readonly id: string;
  readonly name: string;
}

describe.each(STORES)("a create request with an Idempotency-Key on $name", ({ open }) => {
  let store: OpenedDatabase;
  let clock: TestClock;
  let ann: UserPrincipal;
  let service: IdempotencyService;
  let projects: ProjectService;

  beforeEach(async () => {
    store = await open();
    clock = new TestClock();
    ann = await insertUser(store, "usr_ann");
    service = new IdempotencyService({ db: store.db, clock });
    const ports = { clock, ids: countingIds() };
    const memberships = new MembershipService(store);
    const audit = new AuditService(ports);
    projects = new ProjectService({ ...ports, audit, memberships, stores: projectStores(store.db) });
  });
  afterEach(() => store.close());

  const create = (name: string, options: { key?: string; secret?: boolean } = {}): Promise<Created<Answer>> => {
    const { key, secret = false } = options;
    return service.create(
      { key, userId: ann.userId, projectId: null, route: "POST /v1/projects", body: { name } },
      {
        make: (once: Once<ProjectRecord>) => projects.create(ann, { name }, once),
        answer: (project) => ({ id: project.id, name }),
        idOf: (project) => project.id,
        secret,
      },
    );
  };
  const count = async (): Promise<number> => (await store.db.selectFrom("project").select("id").execute()).length;

  test("gets the first response when repeated, and creates nothing", async () => {
    const first = await create("one", { key: "k" });
    expect(first.replayed).toBe(false);
    expect(await create("one", { key: "k" })).toEqual({ answer: first.answer, replayed: true });
    expect(await count()).toBe(1);
  });

  test("creates one resource when sent many times at the same time, and always gets the same response", async () => {
    const calls = await Promise.all(Array.from({ length: 8 }, () => create("one", { key: "k" })));
    expect(new Set(calls.map(({ answer }) => answer.id)).size).toBe(1);
    expect(calls.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(await count()).toBe(1);
  });

  test("is rejected with another body", async () => {
    await create("one", { key: "k" });
    await expect(create("two", { key: "k" })).rejects.toMatchObject({
      code: "idempotency_mismatch",
      param: "Idempotency-Key",
    });
    expect(await count()).toBe(1);
  });

  test("that returned a secret is rejected when repeated, naming the resource; the secret is not stored", async () => {
    const { answer } = await create("secret-name", { key: "k", secret: true });
    await expect(create("secret-name", { key: "k", secret: true })).rejects.toMatchObject({
      code: "already_exists",
      message: expect.stringContaining(answer.id),
    });
    const kept = await store.db.selectFrom("idempotency_record").selectAll().execute();
    expect(JSON.stringify(kept)).not.toContain("secret-name");
  });

  test("that calls a third party is replayed without another call, if the caller is still authorized", async () => {
    let asked = 0;
    let may = true;
    const call = { key: "k", userId: ann.userId, projectId: null, route: "POST /v1/projects" };
    const order = (name: string): Promise<Created<Answer>> =>
      service.create(
        { ...call, body: { name } },
        {
          authorize: async () => {
            if (!may) throw new Error("not any more");
          },
          make: (once: Once<ProjectRecord>) => {
            asked += 1;
            return projects.create(ann, { name }, once);
          },
          answer: (project) => ({ id: project.id, name }),
          idOf: (project) => project.id,
        },
      );
    const first = await order("one");
    expect(await order("one")).toEqual({ answer: first.answer, replayed: true });
    await expect(order("two")).rejects.toMatchObject({ code: "idempotency_mismatch" });
    expect(asked).toBe(1);
    may = false;
    await expect(order("one")).rejects.toThrow("not any more");
    may = true;
    clock.advance(IDEMPOTENCY_KEEP_MS);
    expect(await order("one")).toMatchObject({ replayed: false });
  });

  test("that failed is not stored, so a repeat creates the resource", async () => {
    await store.db.deleteFrom("user").execute();
    await expect(create("one", { key: "k" })).rejects.toThrow();
    await insertUser(store, "usr_ann");
    expect(await create("one", { key: "k" })).toMatchObject({ replayed: false });
  });

  test("leaves no resource behind if its response cannot be stored", async () => {
    const broken = service.create(
      { key: "k", userId: ann.userId, projectId: null, route: "POST /v1/projects", body: {} },
      {
        make: (once: Once<ProjectRecord>) => projects.create(ann, { name: "one" }, once),
        answer: () => {
          throw new Error("the process died here");
        },
        idOf: (project) => project.id,
      },
    );
    await expect(broken).rejects.toThrow("the process died here");
    expect(await count()).toBe(0);
    expect(await create("one", { key: "k" })).toMatchObject({ replayed: false });
  });

  test("is a new request after 24 hours, and its record is deleted", async () => {
    const first = await create("one", { key: "k" });
    clock.advance(IDEMPOTENCY_KEEP_MS - 1);
    const [retention] = repeatRetentions(store.longReads, clock);
    expect(await removeExpired(retention)).toBe(0);
    expect(await create("one", { key: "k" })).toMatchObject({ replayed: true });
    clock.advance(1);
    const second = await create("one", { key: "k" });
    expect(second.replayed).toBe(false);
    expect(second.answer.id).not.toBe(first.answer.id);
    clock.advance(IDEMPOTENCY_KEEP_MS);
    expect(await removeExpired(retention)).toBe(1);
  });

  test("is a new request every time if the key is omitted", async () => {
    await create("one");
    await create("one");
    expect(await count()).toBe(2);
  });
});
