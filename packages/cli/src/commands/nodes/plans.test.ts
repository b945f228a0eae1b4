import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Plan } from "@fairlead/protocol/plans";
import { afterEach, describe, expect, test } from "vitest";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { NODE } from "../../testing/node.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const PRICE = { amount: "3.49", currency: "EUR" };
const PLAN: Plan = {
  id: "hetzner:cx23",
  provider: "hetzner",
  type: "cx23",
  cores: 2,
  memoryMb: 4096,
  diskGb: 40,
  gpu: null,
  monthlyPrice: PRICE,
  hourlyPrice: null,
  locations: [
    { name: "fsn1", available: true, monthlyPrice: PRICE, hourlyPrice: null },
    { name: "nbg1", available: false, monthlyPrice: PRICE, hourlyPrice: null },
  ],
};
const SOURCE = { provider: "hetzner", from: "catalogue", at: "2025-10-21T00:00:00.000Z" };
const TOKEN = "provider-token-that-nobody-may-see";

const dir = mkdtempSync(join(tmpdir(), "fairlead-plans-"));
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
let host: StubHost | undefined;
afterEach(() => {
  host?.close();
  host = undefined;
});

const json =
  (body: unknown): Answer =>
  (response) =>
    void response.end(JSON.stringify(body));

async function call(
  argv: readonly string[],
  answers: Record<string, Answer>,
  {
    env = {},
    terminal = fakeTerminal(),
  }: { env?: Record<string, string>; terminal?: ReturnType<typeof fakeTerminal> } = {},
): ReturnType<typeof run> {
  host = await startStubHost(answers);
  const own = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(argv, { env: { ...own, ...env }, terminal });
}
const sent = (): unknown => host?.seen.find(({ method }) => method === "POST")?.body;

describe("plans", () => {
  test("shows sizes, prices and locations, and the date of the catalogue", async () => {
    const page = { plans: [PLAN], sources: [SOURCE], nextPageToken: "" };
    const { out, notes } = await call(["plans"], { "GET /v1/plans": json(page) });
    expect(out).toMatch(/hetzner:cx23 +2 +4 GB +40 GB .*3\.49 EUR +fsn1 \(nbg1\)/);
    expect(notes).toMatch(/catalogue of 2025-10-21/);
  });

  test("shows sizes and prices in readable units, with a price range when locations differ", async () => {
    const dear = { amount: "10.5", currency: "USD" };
    const plan: Plan = {
      ...PLAN,
      memoryMb: 24105,
      monthlyPrice: { amount: "6.8", currency: "USD" },
      locations: PLAN.locations.map((location, index) => ({
        ...location,
        monthlyPrice: index === 0 ? dear : { amount: "6.8", currency: "USD" },
      })),
    };
    const page = { plans: [plan, { ...PLAN, id: "docker:here", monthlyPrice: null }], sources: [], nextPageToken: "" };
    const { out } = await call(["plans"], { "GET /v1/plans": json(page) });
    expect(out).toMatch(/hetzner:cx23 +2 +23\.5 GB +40 GB +6\.80 to 10\.50 USD +fsn1/);
    expect(out).toMatch(/docker:here +2 +4 GB +40 GB +fsn1/);
  });

  test("says how to provide a required token, and reports one that is not needed", async () => {
    const error = { code: "invalid_request", param: "providerToken", message: "`providerToken`: hetzner wants one." };
    const refused = { status: 400, body: { error } };
    const { code, notes } = await call(["plans", "--refresh", "hetzner"], { "POST /v1/plans:refresh": refused });
    expect([code, notes]).toEqual([1, expect.stringMatching(/hetzner wants one.*\n.*--provider-token-file/)]);
    host?.close();
    const created = await call(["node", "create", "a", "--plan", "hetzner:cx23"], { "POST /v1/nodes": refused });
    expect(created.notes).toContain("--provider-token-file");
    host?.close();
    const env = { FAIRLEAD_PROVIDER_TOKEN: TOKEN };
    const unasked = await call(["node", "create", "a", "--plan", "docker:x"], { "POST /v1/nodes": refused }, { env });
    expect(unasked.notes).toContain("came from $FAIRLEAD_PROVIDER_TOKEN");
    expect(unasked.notes).not.toContain(TOKEN);
    host?.close();
    expect((await call(["plans", "--provider-token-file", "x"], {})).notes).toContain("--refresh");
    host?.close();
    expect((await call(["node", "sweep", "--provider-token-file", "x"], {})).notes).toContain("--provider NAME");
  });

  test("refreshes with a provider token from a file, and never prints it", async () => {
    const file = join(dir, "token");
    writeFileSync(file, `${TOKEN}\n`);
    const answer = { plans: [PLAN], sources: [{ ...SOURCE, from: "provider" }] };
    const result = await call(["plans", "--refresh", "hetzner", "--provider-token-file", file], {
      "POST /v1/plans:refresh": json(answer),
    });
    expect(sent()).toEqual({ provider: "hetzner", providerToken: TOKEN });
    expect(JSON.stringify(result)).not.toContain(TOKEN);
  });
});

describe("node create with a plan", () => {
  const created = { "POST /v1/nodes": json({ node: { ...NODE, planId: "hetzner:cx23" } }) };

  test("sends the plan, locations and the environment's token, and mentions no bootstrap token", async () => {
    const argv = ["node", "create", "rented", "--plan", "hetzner:cx23", "--location", "fsn1,nbg1", "--no-wait"];
    const { code, notes } = await call(argv, created, { env: { FAIRLEAD_PROVIDER_TOKEN: TOKEN } });
    expect(code).toBe(0);
    expect(sent()).toEqual({
      projectId: "prj_1",
      planId: "hetzner:cx23",
      name: "rented",
      location: "fsn1,nbg1",
      providerToken: TOKEN,
    });
    expect(notes).not.toContain("bootstrap-token");
  });

  test("sends no token for the byo plan, even if the environment has one", async () => {
    await call(["node", "create", "own"], created, { env: { FAIRLEAD_PROVIDER_TOKEN: TOKEN } });
    expect(sent()).toEqual({ projectId: "prj_1", planId: "byo", name: "own" });
  });

  test("exits with the provider's message when provisioning fails", async () => {
    const events = [
      {
        id: "evt_2",
        nodeId: "nod_1",
        at: "2030",
        kind: "provisioning_failed",
        status: "failed",
        message: "fsn1 is full",
      },
    ];
    const { code, notes } = await call(["node", "create", "rented", "--plan", "hetzner:cx23", "--wait"], {
      ...created,
      "GET /v1/nodes/nod_1": json({ ...NODE, status: "failed" }),
      "GET /v1/nodes/nod_1/events": json({ events, nextPageToken: "" }),
    });
    expect(code).toBe(1);
    expect(notes).toContain("fsn1 is full");
  });
});

describe("node sweep", () => {
  const orphan = {
    provider: "hetzner",
    machineId: "42",
    nodeId: "nod_gone",
    location: "fsn1",
    publicIp: "192.0.2.1",
    createdAt: "2030-01-01T00:00:00Z",
    deleted: true,
    message: "",
  };

  test("removes orphans only with --delete, and shows machines without nodes and nodes without machines", async () => {
    const missing = [{ provider: "hetzner", nodeId: "nod_1", machineId: "7" }];
    const unseen = [{ provider: "docker", message: "away" }];
    const kept = { ...orphan, machineId: "43", deleted: false, message: "it is locked" };
    const answers = { "POST /v1/nodes:sweep": json({ orphans: [orphan, kept], missing, unseen }) };
    const { out, notes } = await call(["node", "sweep", "--delete"], answers);
    expect(sent()).toEqual({ projectId: "prj_1", delete: true });
    expect(out).toMatch(/deleted +hetzner +42 +nod_gone/);
    expect(out).toMatch(/no machine +hetzner +7 +nod_1/);
    expect(out).toMatch(/no node +hetzner +43 +nod_gone/);
    expect(notes).toBe("hetzner did not delete 43: it is locked\ndid not check docker: away\n");
  });

  test("removes nothing without --delete, and says so when every machine has a node", async () => {
    const { out } = await call(["node", "sweep"], {
      "POST /v1/nodes:sweep": json({ orphans: [], missing: [], unseen: [] }),
    });
    expect(sent()).toEqual({ projectId: "prj_1", delete: false });
    expect(out).toMatch(/^nothing found: every rented machine has a node/);
  });
});
