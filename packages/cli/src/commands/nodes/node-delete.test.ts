import type { ServerResponse } from "node:http";
import type { Node, NodeEvent } from "@fairlead/protocol/resources";
import { type Clock, systemClock } from "@fairlead/protocol/values/clock";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type FakeTerminal, fakeTerminal } from "../../testing/fake-terminal.ts";
import { NODE, nodeEvent } from "../../testing/node.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const REASON = "Waiting for the provider to confirm that the machine is gone.";
const DELETING: Node = { ...NODE, status: "deleting", statusMessage: REASON };

describe("node delete", () => {
  let host: StubHost | undefined;
  /** Null: deleted. */
  let node: Node | null;
  let events: NodeEvent[];
  /** Events after the deletion. */
  let looks: number;

  beforeEach(() => {
    node = NODE;
    events = [nodeEvent({ id: "evt_1", kind: "created", message: "made" })];
    looks = 0;
  });
  afterEach(() => host?.close());

  const reply = (response: ServerResponse, body: object): void => {
    const gone = { error: { code: "not_found", message: "There is no such node in your projects." } };
    response.statusCode = node === null ? 404 : 200;
    response.end(JSON.stringify(node === null ? gone : body));
  };

  /** @param onLook simulates progress at the provider */
  async function remove(
    argv: readonly string[],
    {
      deleted = DELETING,
      onLook = () => undefined,
      terminal = fakeTerminal(),
    }: { deleted?: Node | null; onLook?: () => void; terminal?: FakeTerminal } = {},
  ): ReturnType<typeof run> {
    const look: Answer = (response) => {
      if (node?.status === "deleting") {
        looks += 1;
        onLook();
      }
      reply(response, node ?? {});
    };
    host = await startStubHost({
      "GET /v1/nodes/nod_1": look,
      "GET /v1/nodes/by-slug/attic": (response) => reply(response, NODE),
      "GET /v1/nodes/nod_1/events": (response) => reply(response, { events, nextPageToken: "" }),
      "DELETE /v1/nodes/nod_1": (response) => {
        node = deleted;
        if (deleted !== null) {
          const event = { id: "evt_2", kind: "delete_requested", status: "deleting", message: REASON } as const;
          events = [nodeEvent(event), ...events];
        }
        response.end("{}");
      },
    });
    const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
    return run(["node", "delete", ...argv], { env, terminal });
  }

  test("prints that the node is deleted once it is, also for an identifier", async () => {
    expect(await remove(["attic"], { deleted: null })).toMatchObject({ code: 0, out: "deleted nod_1\n", notes: "" });
  });

  test("with --no-wait says what is left to do, and never that it is done", async () => {
    const { code, out } = await remove(["nod_1", "--no-wait"]);
    expect([code, out]).toEqual([0, `nod_1 is deleting: ${REASON}\n`]);
  });

  test("shows the progress until the machine and the node are gone", async () => {
    const onLook = (): void => {
      const trouble = nodeEvent({ id: "evt_3", kind: "provider_trouble", message: "hetzner does not answer" });
      if (looks === 2) events = [trouble, ...events];
      if (looks === 3) node = null;
    };
    const { code, out, notes } = await remove(["attic", "--wait"], { onLook });
    expect([code, out]).toEqual([0, "deleted nod_1\n"]);
    expect(notes).toBe(`deleting: ${REASON}\nhetzner does not answer\n`);
  });

  describe("when the platform does not respond", () => {
    const stopping = { error: { code: "unavailable", message: "the server is stopping" } };

    async function removeWhileAway(answers: number, clock: Clock): ReturnType<typeof run> {
      const away: Answer = (response) => {
        looks += 1;
        if (looks > answers) node = null;
        if (looks <= answers) response.writeHead(503).end(JSON.stringify(stopping));
        else reply(response, {});
      };
      host = await startStubHost({
        "GET /v1/nodes/nod_1": away,
        "GET /v1/nodes/nod_1/events": (response) => reply(response, { events, nextPageToken: "" }),
        "DELETE /v1/nodes/nod_1": { body: {} },
      });
      const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
      return run(["node", "delete", "nod_1", "--wait"], { env, clock });
    }

    test("retries while it restarts, and says so once", async () => {
      const { code, out, notes } = await removeWhileAway(2, systemClock);
      expect([code, out]).toEqual([0, "deleted nod_1\n"]);
      expect(notes).toBe("the platform does not respond; retrying\n");
    });

    test("gives up after a few minutes, with the platform's error message", async () => {
      let passed = 0;
      const fast = { now: () => systemClock.now(), monotonic: () => (passed += 6 * 60_000) };
      const { code, notes } = await removeWhileAway(100, fast);
      expect([code, notes]).toEqual([1, expect.stringContaining("the server is stopping")]);
      expect(looks).toBeLessThan(10);
    });
  });

  test("stops watching on Ctrl-C without stopping the deletion", async () => {
    const terminal = fakeTerminal();
    const running = remove(["nod_1"], { terminal });
    await vi.waitFor(() => expect(looks).toBeGreaterThan(0));
    terminal.interrupt();
    expect(await running).toMatchObject({ code: 130, notes: expect.stringContaining("fairlead node get nod_1") });
  });

  test("asks to abandon the machine only with --abandon-machine", async () => {
    await remove(["nod_1", "--abandon-machine", "--json"], { deleted: null });
    const urls = host?.seen.filter(({ method }) => method === "DELETE").map(({ url }) => url);
    expect(urls).toEqual(["/v1/nodes/nod_1?abandonMachine=true"]);
  });
});
