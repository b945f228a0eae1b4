import { countingIds, TestClock } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditService } from "../../access/audit/audit-service.ts";
import { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { insertUser, STORES } from "../../testing.fixture.ts";
import { MembershipService } from "../members/membership-service.ts";
import { ProjectRemovalService } from "./project-removal-service.ts";
import { ProjectService } from "./project-service.ts";
import { projectStores } from "./project-stores.ts";

describe.each(STORES)("the deletion of a project on $name", ({ open }) => {
  let store: OpenedDatabase;
  let ann: UserPrincipal;
  let ben: UserPrincipal;
  let projects: ProjectService;
  let removal: ProjectRemovalService;
  let projectId: string;
  let forgotten: string[];
  let agentsEnded: string[];
  let chatsRemoved: string[];
  /** What ending the nodes does. */
  let removeNodes: () => Promise<void>;

  beforeEach(async () => {
    store = await open();
    ann = await insertUser(store, "usr_ann");
    ben = await insertUser(store, "usr_ben");
    forgotten = [];
    agentsEnded = [];
    chatsRemoved = [];
    removeNodes = async () => undefined;
    const ports = { clock: new TestClock(), ids: countingIds() };
    const audit = new AuditService(ports);
    const memberships = new MembershipService(store);
    const stores = projectStores(store.db);
    projects = new ProjectService({ ...ports, audit, memberships, stores });
    removal = new ProjectRemovalService({
      ...ports,
      audit,
      stores,
      access: new ProjectAccess(memberships),
      keys: {
        disableKeysOfProject: async () => ["key_1"],
        forget: (ids) => void forgotten.push(...ids),
      },
      agents: { endAll: async (id) => void agentsEnded.push(id) },
      nodes: { removeAll: () => removeNodes() },
      chats: { removeAll: async (id) => void chatsRemoved.push(id) },
    });
    projectId = (await projects.create(ann, { name: "Support" })).id;
    const member = { projectId, userId: "usr_ben", role: "admin", createdAt: 0 } as const;
    await store.db.transaction().execute((transaction) => memberships.add(transaction, member));
  });
  afterEach(() => store.close());

  const finish = (): Promise<void> => removal.finish(projectId, new AbortController().signal);
  const ask = (caller = ann, confirmName = "Support"): Promise<void> =>
    removal.request(caller, { projectId, confirmName });

  test("requires the project's name, and says what is deleted with it", async () => {
    await expect(ask(ann, "support")).rejects.toMatchObject({
      code: "invalid_request",
      param: "confirmName",
      message: expect.stringContaining("drains and deletes its nodes") as string,
    });
    expect(await removal.waiting()).toEqual([]);
  });

  test("is allowed only to owners", async () => {
    await expect(ask(ben)).rejects.toMatchObject({ code: "permission_denied" });
    const stranger = await insertUser(store, "usr_cid");
    await expect(ask(stranger)).rejects.toMatchObject({ code: "not_found" });
  });

  test("begins immediately: keys are void, nothing can be changed, and only owners still see the project", async () => {
    await ask();
    expect(forgotten).toEqual(["key_1"]);
    expect(await projects.get(ann, projectId)).toMatchObject({ name: "Support" });
    await expect(projects.get(ben, projectId)).rejects.toMatchObject({ code: "not_found" });
    await expect(projects.update(ann, projectId, { name: "Other" })).rejects.toMatchObject({
      code: "project_deleting",
    });
  });

  test("is recorded once, however often it is requested", async () => {
    await ask();
    await ask();
    const events = await store.db
      .selectFrom("audit_event")
      .select("action")
      .where("action", "=", "project.delete")
      .execute();
    expect(events).toHaveLength(1);
  });

  test("resumes where it broke off: a crash while nodes are being ended leaves the project waiting", async () => {
    await ask();
    removeNodes = async () => {
      throw new Error("the process died");
    };
    await expect(finish()).rejects.toThrow("the process died");
    expect(await removal.waiting()).toEqual([projectId]);
    removeNodes = async () => undefined;
    await finish();
    expect(await removal.waiting()).toEqual([]);
    await expect(projects.get(ann, projectId)).rejects.toMatchObject({ code: "not_found" });
  });

  test("leaves no rows except the record of it, and may be finished twice", async () => {
    await ask();
    await finish();
    expect({ agentsEnded, chatsRemoved }).toEqual({ agentsEnded: [projectId], chatsRemoved: [projectId] });
    await finish();
    expect(await store.db.selectFrom("project").select("id").execute()).toEqual([]);
    expect(await store.db.selectFrom("member").select("user_id").execute()).toEqual([]);
    expect(await store.db.selectFrom("audit_event").select("action").orderBy("id").execute()).toEqual([
      { action: "project.create" },
      { action: "project.delete" },
    ]);
  });

  test("never happens to a project for which it was not requested", async () => {
    await finish();
    expect(await projects.get(ann, projectId)).toMatchObject({ id: projectId });
  });

  test("is announced to every listener", async () => {
    let told = 0;
    const stop = removal.onRequest(() => {
      told++;
    });
    await ask();
    stop();
    await ask();
    expect(told).toBe(1);
  });
});
