import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Faults } from "../fakes/hetzner/src/faults.ts";
import type { Call } from "../fakes/hetzner/src/routes.ts";
import { Rental } from "../support/rental.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 30_000;
const WORDS = {
  capacity: "we are unable to provision servers for this location",
  placement: "no host with enough free resources was found",
};

/** A provider that fails in every way that it can, and a control plane that dies between any two calls. No machine stands behind its servers. */
describe("renting a machine from a provider that fails", () => {
  let rental: Rental;

  beforeAll(async () => {
    rental = await Rental.start();
  });

  afterAll(() => rental?.remove());

  /** Each test begins with an empty account that works. */
  afterEach(async () => {
    rental.fake.heal();
    if (!rental.installation.server.running) await rental.installation.startServer();
    for (const { id } of await rental.nodes()) await rental.delete(id);
    for (const { id } of await rental.nodes()) await rental.untilGone(id);
    expect(rental.project.servers).toEqual([]);
  });

  const servers = (): string[] =>
    rental.project.servers.map(({ parts }) => `${parts.type.name}@${parts.location.name}`);

  const untilEmpty = (): Promise<true> => waitFor("an empty account", SOON_MS, async () => servers().length === 0);

  test("returns the first response for a repeated Idempotency-Key without calling the provider", async () => {
    const { platformUrl, environment } = rental.installation;
    const order = async (name: string): Promise<{ status: number; body: string; replayed: string | null }> => {
      const headers = {
        authorization: `Bearer ${environment["FAIRLEAD_TOKEN"]}`,
        "content-type": "application/json",
        "idempotency-key": "order-1",
      };
      const answer = await fetch(`${platformUrl}/v1/nodes`, {
        method: "POST",
        headers,
        body: JSON.stringify(rental.wish({ name })),
      });
      return { status: answer.status, body: await answer.text(), replayed: answer.headers.get("idempotency-replayed") };
    };
    const first = await order("Repeated");
    expect(first).toMatchObject({ status: 200, replayed: null });
    const [node] = await rental.nodes();
    await rental.untilStatus(node?.id ?? "", "bootstrapping");
    rental.fake.faults.unavailable = 1000;
    expect(await order("Repeated")).toEqual({ ...first, replayed: "true" });
    const asked = rental.fake.calls.filter(({ path }) => path === "/server_types");
    expect((await order("Another")).body).toContain("idempotency_mismatch");
    expect(rental.fake.calls.filter(({ path }) => path === "/server_types")).toEqual(asked);
    expect(await rental.nodes()).toHaveLength(1);
  });

  describe("continues by itself", () => {
    test("in the next location when the first one is out of stock", async () => {
      rental.fake.faults.noCapacity = ["nbg1"];
      const { id } = await rental.rent({ location: "nbg1,hel1" });
      await rental.untilStatus(id, "bootstrapping");
      expect(servers()).toEqual(["cx22@hel1"]);
      expect(JSON.stringify(await rental.events(id))).toContain(WORDS.capacity);
    });

    test.each(["stays", "vanishes"] as const)(
      "in the next location after an accepted server fails (it %s), and does not leave the failed one behind",
      async (server) => {
        rental.fake.faults.failLater = { times: 1, server };
        const { id } = await rental.rent({ location: "nbg1,hel1" });
        await waitFor("the second server", SOON_MS, async () => servers().join() === "cx22@hel1");
        await rental.untilStatus(id, "bootstrapping");
      },
    );

    test.each([
      ["429", { rateLimited: 2 }, "limit of 3600 requests per hour reached"],
      ["503", { unavailable: 2 }, "service is currently not available"],
    ])("after %s", async (_, faults, words) => {
      rental.spoilNextOrder(faults);
      const { id } = await rental.rent();
      await rental.untilStatus(id, "bootstrapping");
      expect(JSON.stringify(await rental.events(id))).toContain(words);
      expect(servers()).toEqual(["cx22@nbg1"]);
    });

    test("with a single server after a lost response and a late list", async () => {
      rental.spoilNextOrder({ lostAnswers: 1, listsUntilSeen: 2 });
      const { id } = await rental.rent();
      await rental.untilStatus(id, "bootstrapping");
      expect(servers()).toEqual(["cx22@nbg1"]);
    });

    test("when the address arrives late", async () => {
      rental.fake.faults.readsUntilAddress = 2;
      const { id } = await rental.rent();
      await rental.untilStatus(id, "bootstrapping");
      const node = await waitFor("the address", SOON_MS, async () => {
        const seen = await rental.node(id);
        return seen !== null && seen.publicIp !== "" && seen;
      });
      expect(node.publicIp).toMatch(/^198\.51\.100\./);
    });

    test("after a refused delete, and waits until the provider reports that the server is gone", async () => {
      const { id } = await rental.rent();
      await rental.untilStatus(id, "bootstrapping");
      Object.assign(rental.fake.faults, { locked: 1, readsUntilGone: 2, lostAnswers: 1 });
      await rental.delete(id);
      expect((await rental.node(id))?.status).toBe("deleting");
      await rental.untilGone(id);
      expect(rental.project.servers).toEqual([]);
    });
  });

  describe("reports why, in the provider's words,", () => {
    test("when there is no stock anywhere", async () => {
      rental.fake.faults.noCapacity = ["nbg1", "hel1"];
      const { id } = await rental.rent({ location: "nbg1,hel1" });
      const { statusMessage } = await rental.untilStatus(id, "failed");
      expect(statusMessage).toContain(WORDS.capacity);
      await untilEmpty();
    });

    test("when the only location fails late", async () => {
      rental.fake.faults.failLater = { times: 1, server: "stays" };
      const { id } = await rental.rent();
      const { statusMessage } = await rental.untilStatus(id, "failed");
      expect(statusMessage).toContain(WORDS.placement);
      await untilEmpty();
    });

    test("when the deadline passes, and deletes what was rented", async () => {
      const { id } = await rental.rent();
      await rental.untilStatus(id, "bootstrapping");
      rental.passDeadline(id);
      const { statusMessage } = await rental.untilStatus(id, "failed");
      expect(statusMessage).toMatch(/No daemon enrolled within \d+ minutes.*The machine is running at 198\.51\.100/s);
      await untilEmpty();
    });

    test("when the token is revoked meanwhile, and continues with another one", async () => {
      const token = rental.fake.addToken(rental.project);
      rental.fake.faults.readsUntilRunning = 1_000;
      const { id } = await rental.rent({ providerToken: token });
      await waitFor("the server", SOON_MS, async () => servers().length === 1);
      rental.fake.revoke(token);
      await waitFor("the reason", SOON_MS, async () => {
        return (await rental.node(id))?.statusMessage?.includes("unable to authenticate");
      });
      rental.fake.faults.readsUntilRunning = 0;
      const patched = await rental.installation.call("PATCH", `/v1/nodes/${id}`, { providerToken: rental.token });
      expect(patched.status, await patched.text()).toBe(200);
    });
  });

  describe("refuses a token before anything is created", () => {
    test.each(["unknown", "read-only"] as const)("%s", async (kind) => {
      const token = kind === "unknown" ? "nonsense".padEnd(64, "n") : rental.fake.addToken(rental.project, "read_only");
      const answer = await rental.order({ providerToken: token });
      const text = await answer.text();
      expect(answer.status, text).toBe(400);
      expect(text).toContain("providerToken");
      expect(text).not.toContain(token);
      expect(await rental.nodes()).toEqual([]);
      expect(servers()).toEqual([]);
    });

    test("of a project other than the one with the node's machine", async () => {
      const { id } = await rental.rent();
      await rental.untilStatus(id, "bootstrapping");
      const foreign = rental.fake.addToken(rental.fake.addProject("other"));
      const answer = await rental.installation.call("PATCH", `/v1/nodes/${id}`, { providerToken: foreign });
      expect(answer.status, await answer.text()).toBe(400);
      expect(servers()).toEqual(["cx22@nbg1"]);
    });
  });

  describe("survives kill -9", () => {
    test.each<[string, (call: Call) => boolean, Partial<Faults>]>([
      ["the order", ({ method }) => method === "POST", {}],
      ["the lookup after a lost response", ({ query }) => query.has("label_selector"), { lostAnswers: 1 }],
      ["the first read of the server", ({ path }) => /^\/servers\/[1-9]/.test(path), {}],
      ["the read of its actions", ({ path }) => path.endsWith("/actions"), { readsUntilRunning: 5 }],
    ])("at %s: there is one server, and the node continues", async (_, step, faults) => {
      rental.spoilNextOrder(faults);
      const killed = rental.killAt(step);
      // It may die before it has answered.
      await rental.rent().catch(() => null);
      await killed;
      await rental.installation.startServer();
      const [node] = await rental.nodes();
      await rental.untilStatus(node?.id ?? "", "bootstrapping");
      expect(servers()).toEqual(["cx22@nbg1"]);
    });

    test.each([
      ["the lookup before the delete", /^GET \/servers$/],
      ["the delete", /^DELETE \/servers\/\d+$/],
    ])("at %s: nothing is left", async (_, step) => {
      const { id } = await rental.rent();
      await rental.untilStatus(id, "bootstrapping");
      const killed = rental.killAt(({ method, path }) => step.test(`${method} ${path}`));
      await rental.delete(id);
      await killed;
      await rental.installation.startServer();
      await rental.untilGone(id);
      expect(servers()).toEqual([]);
      expect(rental.rowsOf(id)).toEqual([]);
    });
  });
});
