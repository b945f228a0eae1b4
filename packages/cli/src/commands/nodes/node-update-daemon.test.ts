import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Node } from "@fairlead/protocol/resources";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type FakeTerminal, fakeTerminal } from "../../testing/fake-terminal.ts";
import { NODE } from "../../testing/node.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const dir = mkdtempSync(join(tmpdir(), "fairlead-roll-"));
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
const VERSION = "1.3.0";

let host: StubHost | undefined;
let nodes: Map<string, Node>;
/** The node's state after the request. */
let becomes: (node: Node) => Partial<Node>;

const update = (state: string, message = "") => ({
  wanted: VERSION,
  state,
  message,
  since: "2030-01-02T00:00:00.000Z",
});
const done = (): Partial<Node> => ({ daemonVersion: VERSION, daemonUpdate: update("done") });

beforeEach(() => {
  nodes = new Map(["a", "b", "c"].map((name) => [name, { ...NODE, id: `nod_${name}`, identifier: name }]));
  becomes = done;
});
afterEach(() => {
  host?.close();
  host = undefined;
});

async function roll(args: readonly string[], terminal: FakeTerminal = fakeTerminal()): ReturnType<typeof run> {
  const answers: Record<string, Answer> = {
    "GET /v1/nodes": (response) => void response.end(JSON.stringify({ nodes: [...nodes.values()], nextPageToken: "" })),
  };
  for (const [name, { id }] of nodes) {
    const tell: Answer = (response) => void response.end(JSON.stringify(nodes.get(name)));
    answers[`GET /v1/nodes/${id}`] = tell;
    answers[`GET /v1/nodes/by-slug/${name}`] = tell;
    answers[`PUT /v1/nodes/${id}/daemon-version`] = (response) => {
      const node = nodes.get(name) ?? NODE;
      nodes.set(name, { ...node, desiredDaemonVersion: VERSION, ...becomes(node) });
      response.end("{}");
    };
  }
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["node", "update-daemon", "--to", VERSION, ...args], { env, terminal });
}

const asked = (): string[] =>
  (host?.seen ?? []).filter(({ method }) => method === "PUT").map(({ url }) => url.split("/")[3] ?? "");

describe("node update-daemon", () => {
  test("updates one node after another, and reports the result of each", async () => {
    const { code, out } = await roll(["--all", "--json"]);
    expect(code).toBe(0);
    expect(asked()).toEqual(["nod_a", "nod_b", "nod_c"]);
    expect(host?.seen.find(({ method }) => method === "PUT")?.body).toEqual({ version: VERSION });
    const { nodes: told } = JSON.parse(out) as { nodes: { result: string; from: string; daemonVersion: string }[] };
    expect(told).toMatchObject(Array(3).fill({ result: "updated", from: "1.2.3", daemonVersion: VERSION }));
  });

  test("stops at the first rollback, says why and what to do, and starts no other update", async () => {
    becomes = ({ identifier }) =>
      identifier === "b" ? { daemonUpdate: update("rolled_back", "it ended 3 times") } : done();
    const { code, out, notes } = await roll(["--all"]);
    expect(code).toBe(1);
    expect(asked()).toEqual(["nod_a", "nod_b"]);
    expect(out).toMatch(
      /a +1\.2\.3 +1\.3\.0 +updated\n.*b +1\.2\.3 +1\.2\.3 +failed\n.*c +1\.2\.3 +1\.2\.3 +not asked/s,
    );
    expect(notes).toContain("b is not on 1.3.0: it ended 3 times");
    expect(notes).toContain("fairlead node events nod_b");
  });

  test("updates the nodes of a batch at the same time, and waits for all of them", async () => {
    becomes = ({ identifier }) => (identifier === "a" ? { daemonUpdate: update("refused", "no room") } : done());
    const { code, out } = await roll(["--all", "--batch", "2"]);
    expect(code).toBe(1);
    expect(asked().toSorted()).toEqual(["nod_a", "nod_b"]);
    expect(out).toMatch(/b .*updated/);
  });

  test("stops at a node that does not come back in time, even if it runs the new daemon", async () => {
    becomes = () => ({ ...done(), status: "unreachable" });
    const { code, notes } = await roll(["a", "b", "--timeout", "1s"]);
    expect(code).toBe(1);
    expect(asked()).toEqual(["nod_a"]);
    expect(notes).toContain("it did not come back within");
    expect(notes).toContain("its status is unreachable");
  });

  test("does not count a node as updated while the new daemon is on trial", async () => {
    becomes = () => ({ daemonVersion: VERSION, daemonUpdate: update("trial") });
    const { notes } = await roll(["a", "--timeout", "1s"]);
    expect(notes).toContain("a: active, 1.3.0, trial");
    expect(notes).toContain("did not come back");
  });

  test("resumes where it stopped: skips updated nodes, and does not restart updates in progress", async () => {
    const [a = NODE, b = NODE] = nodes.values();
    nodes.set("a", { ...a, daemonVersion: VERSION, daemonUpdate: update("done") });
    nodes.set("b", { ...b, desiredDaemonVersion: VERSION, daemonUpdate: update("downloading") });
    const terminal = fakeTerminal();
    const running = roll(["--all"], terminal);
    await vi.waitFor(() => expect(terminal.printed.notes).toContain("b: active, 1.2.3, downloading"));
    nodes.set("b", { ...b, ...done() });
    expect(await running).toMatchObject({ code: 0 });
    expect(asked()).toEqual(["nod_c"]);
  });

  test("retries a failed update, and does not mistake the earlier failure for the new result", async () => {
    const [a = NODE] = nodes.values();
    nodes.set("a", {
      ...a,
      desiredDaemonVersion: VERSION,
      daemonUpdate: { ...update("rolled_back"), since: "2030-01-01T00:00:00.000Z" },
    });
    expect(await roll(["a"])).toMatchObject({ code: 0 });
    expect(asked()).toEqual(["nod_a"]);
  });

  test("starts no more updates on Ctrl-C, and says which are running and which were not started", async () => {
    becomes = () => ({ daemonUpdate: update("downloading", "40 %") });
    const terminal = fakeTerminal();
    const running = roll(["--all"], terminal);
    await vi.waitFor(() => expect(terminal.printed.notes).toContain("a: active, 1.2.3, downloading: 40 %"));
    terminal.interrupt();
    const { code, notes } = await running;
    expect(code).toBe(130);
    expect(notes).toContain("Still updating: a. Not started: b, c.");
    expect(asked()).toEqual(["nod_a"]);
  });

  test("skips unreachable nodes with --all, and refuses to start when a named node is unreachable", async () => {
    const [a = NODE] = nodes.values();
    nodes.set("a", { ...a, status: "unreachable" });
    const all = await roll(["--all"]);
    expect(all.code).toBe(0);
    expect(all.notes).toContain("skipping a: it is unreachable");
    expect(asked()).toEqual(["nod_b", "nod_c"]);
    host?.close();
    nodes.set("b", { ...NODE, id: "nod_b", identifier: "b" });
    const named = await roll(["b", "a"]);
    expect(named.notes).toContain("a is unreachable: its daemon cannot be reached. No node was updated.");
    expect(asked()).toEqual([]);
  });

  test.each([{ args: [] }, { args: ["a", "--all"] }])("requires either nodes or --all: $args", async ({ args }) => {
    const { code, notes } = await roll(args);
    expect(code).toBe(2);
    expect(notes).toContain("name the nodes or use --all");
  });
});
