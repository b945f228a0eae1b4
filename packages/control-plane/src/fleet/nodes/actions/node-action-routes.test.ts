import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { DomainError } from "@fairlead/protocol/errors";
import { nodeSchema } from "@fairlead/protocol/resources";
import { countingIds } from "@fairlead/protocol/testing/test-clock";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Authenticate } from "../../../access/auth/authenticate.ts";
import { isPrincipalOf, type UserPrincipal } from "../../../access/auth/principal.ts";
import { IDEMPOTENCY_KEEP_MS, IdempotencyService } from "../../../access/idempotency/idempotency-service.ts";
import { createPlatformHost, type PlatformApp } from "../../../http/platform-host.ts";
import { createLog } from "../../../installation/process/log.ts";
import { STORES } from "../../../testing.fixture.ts";
import { type NodeFixture, nodeFixture, OWNER, VIEWER } from "../node.fixture.ts";
import { registerNodeActionRoutes } from "./node-action-routes.ts";

describe.each(STORES)("a restart with an Idempotency-Key, on $name", ({ open }) => {
  let fixture: NodeFixture;
  let app: PlatformApp;
  let caller: UserPrincipal;
  let id: string;

  const authenticate: Authenticate = async (_header, kinds) => {
    if (isPrincipalOf(caller, kinds)) return caller;
    throw new DomainError("invalid_credential", "Nobody else is known here.");
  };

  beforeEach(async () => {
    caller = OWNER;
    fixture = await nodeFixture(open);
    const idempotency = new IdempotencyService({ db: fixture.store.db, clock: fixture.clock });
    app = createPlatformHost({
      ids: countingIds(),
      log: createLog({ level: "silent" }),
      authenticate,
      requests: new RequestTally(),
      routes: (routes) => registerNodeActionRoutes(routes, { ...fixture, idempotency }),
      document: { publicUrl: "https://platform.example", inferencePaths: {} },
      health: { publicJwks: () => ({ keys: [] }), ready: async () => undefined },
    });
    await app.ready();
    id = (await fixture.createEnrolled("Box")).node.id;
  });
  afterEach(async () => {
    await app.close();
    fixture.drain.close();
    await fixture.close();
  });

  const restart = (key: string | null, { node = id, body }: { node?: string; body?: object } = {}) =>
    app.inject({
      method: "POST",
      url: `/v1/nodes/${node}:restart-workload`,
      headers: { authorization: "Bearer token", ...(key === null ? {} : { "idempotency-key": key }) },
      ...(body === undefined ? {} : { payload: body }),
    });
  const restarts = async (): Promise<number | undefined> => (await fixture.stores.nodes.find(id))?.restarts;
  const requests = async (): Promise<number> =>
    (await fixture.nodes.events(OWNER, id, { limit: 100, after: null })).filter(
      ({ kind }) => kind === "restart_requested",
    ).length;

  test("restarts once however often it is sent, and repeats the first response", async () => {
    const pushed: string[] = [];
    fixture.changes.listen(({ aspect }) => pushed.push(aspect));
    const first = await restart("k");
    expect(nodeSchema.parse(first.json())).toMatchObject({ id, workloads: [{ desiredGeneration: 2 }] });
    expect(first.headers).not.toHaveProperty("idempotency-replayed");
    await restart("other");
    const again = await restart("k", { body: { workload: "engine" } });
    expect([again.statusCode, again.json()]).toEqual([200, first.json()]);
    expect(again.headers).toMatchObject({ "idempotency-replayed": "true" });
    expect([await restarts(), await requests(), pushed]).toEqual([2, 2, ["desired", "desired"]]);
  });

  test("restarts once when it is sent concurrently, and all responses are the same", async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => restart("k")));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(6).fill(200));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect([await restarts(), await requests()]).toEqual([1, 1]);
  });

  test("gets the same response even if the node can no longer be restarted", async () => {
    const first = await restart("k");
    await fixture.life.drain(OWNER, id, 3_600_000);
    expect((await restart("k")).json()).toEqual(first.json());
    expect((await restart("new")).json()).toMatchObject({ error: { code: "node_out_of_service" } });
  });

  test("does not count when it is refused, so a repeat restarts", async () => {
    await fixture.life.drain(OWNER, id, 3_600_000);
    expect((await restart("k")).statusCode).toBe(409);
    await fixture.life.resume(OWNER, id);
    expect((await restart("k")).headers).not.toHaveProperty("idempotency-replayed");
    expect(await restarts()).toBe(1);
  });

  test("is refused for another node with the same key, and not replayed to callers who may not restart", async () => {
    await restart("k");
    const other = (await fixture.createEnrolled("Other")).node.id;
    expect((await restart("k", { node: other })).json()).toMatchObject({ error: { code: "idempotency_mismatch" } });
    caller = VIEWER;
    expect((await restart("k")).json()).toMatchObject({ error: { code: "permission_denied" } });
    expect(await restarts()).toBe(1);
  });

  test("restarts again after a day, and every time without a key", async () => {
    await restart("k");
    fixture.clock.advance(IDEMPOTENCY_KEEP_MS);
    await restart("k");
    await restart(null);
    await restart(null);
    expect(await restarts()).toBe(4);
  });
});
