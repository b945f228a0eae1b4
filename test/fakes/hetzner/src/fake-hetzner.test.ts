import { afterEach, describe, expect, test } from "vitest";
import { HetznerDocument, hasDocument, NEEDS_DOCUMENT } from "./document.fixture.ts";
import { FakeHetzner, type FakeOptions } from "./fake-hetzner.ts";
import type { MachineStarter } from "./machine-starter.ts";
import type { Project } from "./project.ts";

interface Server {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly public_net: { readonly ipv4: { readonly ip: string } | null };
}

interface Body {
  readonly server: Server;
  readonly servers: readonly Server[];
  readonly action: { readonly id: number; readonly status: string; readonly error: { readonly code: string } | null };
  readonly actions: readonly Body["action"][];
  readonly root_password: string | null;
  readonly meta: { readonly pagination: { readonly next_page: number | null; readonly total_entries: number } };
  readonly error: { readonly code: string; readonly message: string; readonly details?: unknown };
  readonly [field: string]: unknown;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

const WISH = { name: "one", server_type: "cx22", image: "debian-12", location: "nbg1", labels: { fleet: "a" } };

describe("the fake Hetzner Cloud API", () => {
  const document = hasDocument ? new HetznerDocument() : null;
  let fake: FakeHetzner;
  let project: Project;
  let token: string;

  async function start(options: FakeOptions = {}): Promise<void> {
    fake = await FakeHetzner.start(options);
    project = fake.addProject("own");
    token = fake.addToken(project);
  }

  /** Holds every answer that any test gets to the provider's document. */
  async function call(
    method: string,
    path: string,
    { body, bearer = token }: { body?: unknown; bearer?: string } = {},
  ) {
    const response = await fetch(`${fake.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${bearer}` },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const answer: Answer = {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Body,
    };
    expect(document?.problems(method, path, answer) ?? "", JSON.stringify(answer.body)).toBe("");
    return answer;
  }

  const create = (wish: object = {}): Promise<Answer> => call("POST", "/servers", { body: { ...WISH, ...wish } });

  async function untilRunning(id: number): Promise<string[]> {
    const seen: string[] = [];
    while (seen.at(-1) !== "running") seen.push((await call("GET", `/servers/${id}`)).body.server.status);
    return seen;
  }

  async function stockOf(type: string): Promise<boolean[]> {
    const { body } = await call("GET", `/server_types?name=${type}`);
    const [found] = body["server_types"] as { locations: { available: boolean }[] }[];
    return found?.locations.map(({ available }) => available) ?? [];
  }

  afterEach(() => fake.close());

  test(`responds as the provider's document says${NEEDS_DOCUMENT}`, async ({ skip }) => {
    await start();
    if (!hasDocument) skip("the document is not beside the checkout");
    const { server, action } = (await create()).body;
    const lists = ["/servers", "/server_types", "/locations", "/images", "/ssh_keys", "/pricing"];
    const ones = [`/servers/${server.id}`, `/servers/${server.id}/actions`, `/actions/${action.id}`, "/locations/1"];
    for (const path of [...lists, ...ones, "/server_types/104", "/servers/1", "/actions/1"]) await call("GET", path);
    expect((await call("DELETE", `/servers/${server.id}`)).status).toBe(200);
  });

  test(`detects a response that the document does not allow${NEEDS_DOCUMENT}`, async ({ skip }) => {
    await start();
    if (document === null) return skip("the document is not beside the checkout");
    const { server } = (await create()).body;
    expect(document.problems("GET", "/servers/1", { status: 200, body: { server } })).toBe("");
    const wrong = { server: { ...server, status: "happy" } };
    expect(document.problems("GET", "/servers/1", { status: 200, body: wrong })).toContain("/server/status");
  });

  test("creates a server, runs it with an address, and removes it after its delete", async () => {
    await start();
    const made = await create();
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({ action: { status: "running" }, server: { status: "initializing", name: "one" } });
    expect(made.body.root_password).not.toBeNull();
    const { id } = made.body.server;
    expect(await untilRunning(id)).toEqual(["initializing", "starting", "running"]);
    expect((await call("GET", `/actions/${made.body.action.id}`)).body.action.status).toBe("success");
    expect((await call("GET", `/servers/${id}`)).body.server.public_net.ipv4?.ip).toMatch(/^198\.51\.100\./);
    await call("DELETE", `/servers/${id}`);
    expect((await call("GET", `/servers/${id}`)).body.server.status).toBe("deleting");
    await expect.poll(async () => (await call("GET", `/servers/${id}`)).status).toBe(404);
    expect(await call("DELETE", `/servers/${id}`)).toMatchObject({
      status: 404,
      body: { error: { code: "not_found" } },
    });
    expect(project.servers).toEqual([]);
  });

  test.each([
    [{ name: "not a host name" }, 422, "invalid_input"],
    [{ name: undefined }, 422, "invalid_input"],
    [{ server_type: "cx9000" }, 422, "invalid_input"],
    [{ server_type: "cx11" }, 422, "invalid_input"],
    [{ server_type: "cx22", location: "ash" }, 422, "invalid_input"],
    [{ location: "moon" }, 422, "invalid_input"],
    [{ image: "windows" }, 422, "invalid_input"],
    [{ labels: { fleet: "no spaces here" } }, 422, "invalid_input"],
    [{ labels: { "hetzner.cloud/own": "x" } }, 422, "invalid_input"],
    [{ user_data: "ü".repeat(16 * 1024 + 1) }, 422, "invalid_input"],
    [{ name: "taken" }, 409, "uniqueness_error"],
    [{ name: "third" }, 403, "resource_limit_exceeded"],
  ])("refuses a server that it cannot create: %j", async (wish, status, code) => {
    await start({ serverLimit: 2 });
    await create({ name: "taken" });
    if (code === "resource_limit_exceeded") await create({ name: "second" });
    expect(await create(wish)).toMatchObject({ status, body: { error: { code } } });
  });

  test("refuses a body that is not JSON as such", async () => {
    await start();
    expect(await call("POST", "/servers", { body: "{" })).toMatchObject({
      status: 400,
      body: { error: { code: "json_error" } },
    });
  });

  test("accepts user data of exactly 32 KiB and passes it to the machine unchanged", async () => {
    const given: string[] = [];
    const starter: MachineStarter = {
      start: ({ userData }) => Promise.resolve(given.push(userData)).then(() => "192.0.2.1"),
      remove: () => Promise.resolve(),
    };
    await start({ starter });
    const userData = "ü".repeat(16 * 1024);
    await untilRunning((await create({ user_data: userData })).body.server.id);
    expect(given).toEqual([userData]);
  });

  test("returns lists in pages that contain only what the selector matches", async () => {
    await start({ maxPerPage: 2 });
    for (const name of ["a", "b", "c", "d", "e"]) await create({ name, labels: { fleet: name < "d" ? "one" : "two" } });
    const names: string[] = [];
    let page: number | null = 1;
    while (page !== null) {
      const { body } = await call("GET", `/servers?label_selector=fleet%3Done&per_page=50&page=${page}`);
      expect(body.meta.pagination.total_entries).toBe(3);
      names.push(...body.servers.map(({ name }) => name));
      page = body.meta.pagination.next_page;
    }
    expect(names).toEqual(["a", "b", "c"]);
  });

  test("distinguishes unknown, revoked and read-only tokens and tokens of another project", async () => {
    await start();
    const { id } = (await create()).body.server;
    expect(await call("GET", "/servers", { bearer: "nonsense" })).toMatchObject({
      status: 401,
      body: { error: { code: "unauthorized" } },
    });
    const readOnly = fake.addToken(project, "read_only");
    expect((await call("GET", `/servers/${id}`, { bearer: readOnly })).status).toBe(200);
    expect(await call("DELETE", `/servers/${id}`, { bearer: readOnly })).toMatchObject({
      status: 403,
      body: { error: { code: "token_readonly" } },
    });
    const foreign = fake.addToken(fake.addProject("other"));
    expect((await call("GET", `/servers/${id}`, { bearer: foreign })).status).toBe(404);
    expect((await call("GET", "/servers", { bearer: foreign })).body.servers).toEqual([]);
    fake.revoke(token);
    expect((await call("GET", `/servers/${id}`)).status).toBe(401);
  });

  describe("with faults", () => {
    test("lists stock but refuses to create a server where there is no capacity, and only there", async () => {
      await start({ faults: { noCapacity: ["nbg1"] } });
      expect(await stockOf("cx22")).toEqual([true, true, true]);
      expect(await create()).toMatchObject({ status: 412, body: { error: { code: "resource_unavailable" } } });
      expect((await create({ location: "hel1" })).status).toBe(201);
    });

    test("reports a sold-out type as neither available nor recommended in its location", async () => {
      await start({ faults: { soldOut: ["cx22@nbg1"] } });
      expect(await stockOf("cx22")).toEqual([true, false, true]);
      fake.faults.soldOut = ["cx22@fsn1"];
      const { body } = await call("GET", "/server_types/104");
      expect(body["server_type"]).toMatchObject({
        locations: [
          { id: 1, name: "fsn1", deprecation: null, available: false, recommended: false },
          { name: "nbg1", available: true },
          { name: "hel1", available: true },
        ],
      });
    });

    test.each(["/datacenters", "/datacenters/1", "/pricing"])("returns 410 for a removed path: %s", async (path) => {
      await start({ faults: { removed: ["/pricing"] } });
      expect(await call("GET", path)).toMatchObject({
        status: 410,
        body: { error: { code: "deprecated_api_endpoint" } },
      });
    });

    test.each(["stays", "vanishes"] as const)(
      "reports in its action why an accepted server failed, and the server %s",
      async (fate) => {
        await start({ faults: { failLater: { times: 1, server: fate } } });
        const { server, action } = (await create()).body;
        await expect
          .poll(async () => (await call("GET", `/actions/${action.id}`)).body.action)
          .toMatchObject({ status: "error", error: { code: "resource_unavailable" } });
        const left = await call("GET", `/servers/${server.id}`);
        expect(fate === "stays" ? left.body.server.status : left.status).toBe(fate === "stays" ? "off" : 404);
        expect(await untilRunning((await create({ name: "two" })).body.server.id)).toContain("running");
      },
    );

    test("fails the action of a machine that does not boot, with the reason", async () => {
      await start({ starter: { start: () => Promise.reject(new Error("no disk")), remove: () => Promise.resolve() } });
      const { action } = (await create()).body;
      await expect
        .poll(async () => (await call("GET", `/actions/${action.id}`)).body.action.error)
        .toEqual({ code: "action_failed", message: "no disk" });
    });

    test("omits a new server from an eventually consistent list at first, but returns it by ID", async () => {
      await start({ faults: { listsUntilSeen: 2 } });
      const { id } = (await create()).body.server;
      expect((await call("GET", `/servers/${id}`)).status).toBe(200);
      const counts: number[] = [];
      for (let list = 0; list < 3; list += 1) counts.push((await call("GET", "/servers")).body.servers.length);
      expect(counts).toEqual([0, 0, 1]);
    });

    test("reports a server as running before its late address", async () => {
      await start({ faults: { readsUntilAddress: 2 } });
      const { id } = (await create()).body.server;
      await untilRunning(id);
      const addresses: boolean[] = [];
      for (let read = 0; read < 2; read += 1)
        addresses.push((await call("GET", `/servers/${id}`)).body.server.public_net.ipv4 !== null);
      expect(addresses).toEqual([false, true]);
    });

    test("returns 429 with the headers, and accepts a call again a second later", async () => {
      let now = 1_700_000_000_000;
      await start({ now: () => now });
      fake.faults.rateLimited = 1;
      const refused = await call("GET", "/servers");
      expect(refused).toMatchObject({ status: 429, body: { error: { code: "rate_limit_exceeded" } } });
      expect(Object.fromEntries(refused.headers)).toMatchObject({
        "ratelimit-limit": "3600",
        "ratelimit-remaining": "0",
        "ratelimit-reset": "1700003600",
      });
      expect((await call("GET", "/servers")).status).toBe(429);
      fake.heal();
      expect((await call("GET", "/servers")).status).toBe(200);
      fake.faults.rateLimited = 1;
      expect((await call("GET", "/servers")).status).toBe(429);
      now += 1000;
      expect((await call("GET", "/servers")).status).toBe(200);
    });

    test("returns 503 once when out of service", async () => {
      await start({ faults: { unavailable: 1 } });
      expect(await create()).toMatchObject({ status: 503, body: { error: { code: "service_error" } } });
      expect((await create()).status).toBe(201);
    });

    test("creates the server even when the response is lost", async () => {
      await start({ faults: { lostAnswers: 1 } });
      await expect(create()).rejects.toThrow("fetch failed");
      expect(project.servers.map(({ parts }) => parts.name)).toEqual(["one"]);
    });

    test("notifies an observer of a call once, before the response", async () => {
      await start();
      const seen: number[] = [];
      fake.once(
        ({ method }) => method === "POST",
        () => void seen.push(project.servers.length),
      );
      await create();
      await create({ name: "two" });
      expect(seen).toEqual([1]);
    });

    test("refuses to delete a locked server once", async () => {
      await start({ faults: { locked: 1 } });
      const { id } = (await create()).body.server;
      expect(await call("DELETE", `/servers/${id}`)).toMatchObject({
        status: 423,
        body: { error: { code: "locked" } },
      });
      expect((await call("DELETE", `/servers/${id}`)).status).toBe(200);
    });
  });
});
