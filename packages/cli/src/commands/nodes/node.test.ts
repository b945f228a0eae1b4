import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Node, NodeEvent } from "@fairlead/protocol/resources";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type FakeTerminal, fakeTerminal } from "../../testing/fake-terminal.ts";
import { AGENT_WORKLOAD, ENGINE, NODE, nodeEvent } from "../../testing/node.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";
import { isOlder } from "./node-versions.ts";

const dir = mkdtempSync(join(tmpdir(), "fairlead-node-"));
let host: StubHost | undefined;
/** The node's current state and its events, newest first. */
let node: Node;
let events: NodeEvent[];

beforeEach(() => {
  node = NODE;
  events = [nodeEvent({ id: "evt_1", kind: "created", message: "made" })];
});
afterEach(() => {
  host?.close();
  host = undefined;
});
process.once("exit", () => rmSync(dir, { recursive: true, force: true }));

async function call(
  argv: readonly string[],
  answers: Record<string, Answer> = {},
  terminal: FakeTerminal = fakeTerminal(),
): ReturnType<typeof run> {
  host = await startStubHost({
    "GET /v1/nodes": (response) => void response.end(JSON.stringify({ nodes: [node], nextPageToken: "" })),
    "GET /v1/nodes/nod_1": (response) => void response.end(JSON.stringify(node)),
    "GET /v1/nodes/by-slug/attic": (response) => void response.end(JSON.stringify(node)),
    "GET /v1/nodes/nod_1/events": (response) => void response.end(JSON.stringify({ events, nextPageToken: "" })),
    "GET /v1/daemon-builds": { body: { daemonBuilds: [], nextPageToken: "", serverVersion: "1.2.3" } },
    ...answers,
  });
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(argv, { env, terminal });
}

/** Accepts the call and changes the node. */
const thereupon =
  (change: () => void): Answer =>
  (response) => {
    change();
    response.end(JSON.stringify(node));
  };
const sent = (method: string): unknown => host?.seen.find((request) => request.method === method)?.body;

describe("node get", () => {
  test("shows the reason for the status, the workloads, and the machine's problems", async () => {
    node = {
      ...NODE,
      status: "degraded",
      statusMessage: "engine is backing-off",
      conditions: [
        { type: "disk", status: "problem", reason: "disk_pressure", message: "91 % full", since: "2030" },
        { type: "gpu", status: "ok", reason: "", message: "", since: "2030" },
        { type: "memory", status: "warning", reason: "no_memory_limit", message: "no limit", since: "2030" },
      ],
      workloads: [
        {
          ...ENGINE,
          ready: false,
          restartCount: 3,
          lastExit: { code: 137, reason: "out of memory", at: "2030-01-01T00:00:05Z" },
          upToDate: false,
          desiredImage: "engine:2",
        },
      ],
    };
    const { out } = await call(["node", "get", "attic"]);
    expect(out).toMatch(/status +degraded since 2030.*\nreason +engine is backing-off\n/);
    expect(out).toMatch(/restarted 3 times/);
    expect(out).toMatch(/last exit +out of memory at/);
    expect(out).toMatch(/engine:1 .*; desired: engine:2/);
    expect(out).toMatch(/! disk +91 % full/);
    expect(out).toMatch(/! memory +no limit/);
    expect(out).not.toContain("gpu");
  });
});

describe("node update", () => {
  test("changes only the named variables, with an update mask", async () => {
    const argv = ["node", "update", "attic", "--env", "A=x=y", "--env", "C=", "--unset-env", "B", "--no-wait"];
    const { code } = await call(argv, { "PATCH /v1/nodes/nod_1": { body: NODE } });
    expect(code).toBe(0);
    expect(sent("PATCH")).toEqual({
      node: { engineConfig: { image: "engine:1", env: { A: "x=y", C: "" } } },
      updateMask: "engineConfig",
    });
  });

  test.each([
    ["engine.yaml", "preset: ollama\nenv: { OLLAMA_KEEP_ALIVE: 1h }\n"],
    ["engine.json", '{"preset":"ollama","env":{"OLLAMA_KEEP_ALIVE":"1h"}}'],
    ["-", "preset: ollama\nenv:\n  OLLAMA_KEEP_ALIVE: 1h\n"],
  ])("reads a whole config from %s", async (name, text) => {
    const file = name === "-" ? name : join(dir, name);
    if (name !== "-") writeFileSync(file, text);
    const argv = ["node", "update", "attic", "--engine-config", file, "--name", "Loft", "--no-wait"];
    const result = await call(argv, { "PATCH /v1/nodes/nod_1": { body: NODE } }, fakeTerminal({ input: text }));
    expect(result.code).toBe(0);
    expect(sent("PATCH")).toEqual({
      node: { name: "Loft", engineConfig: { preset: "ollama", env: { OLLAMA_KEEP_ALIVE: "1h" } } },
      updateMask: "name,engineConfig",
    });
  });

  test.each([
    ["a: [", "not valid YAML or JSON"],
    ["- a", "must contain the fields"],
    ["imagee: x", "engineConfig: "],
    ["port: 99999999\nimage: x", "engineConfig.port: "],
  ])("rejects %j, names the mistake and sends nothing", async (text, mistake) => {
    const argv = ["node", "update", "attic", "--engine-config", "-"];
    const result = await call(argv, {}, fakeTerminal({ input: text }));
    expect([result.code, result.notes]).toEqual([2, expect.stringContaining(mistake)]);
    expect(sent("PATCH")).toBeUndefined();
  });

  test("does not wait for an agent that is starting on the same node", async () => {
    node = { ...NODE, workloads: [ENGINE, AGENT_WORKLOAD] };
    const { code } = await call(["node", "update", "attic", "--image", "engine:1"], {
      "PATCH /v1/nodes/nod_1": { body: node },
    });
    expect(code).toBe(0);
  });

  test("shows the progress until the new engine is ready", async () => {
    const coming = { ...ENGINE, upToDate: false, desiredImage: "engine:2", progress: 42 };
    let looks = 0;
    const { code, out, notes } = await call(["node", "update", "attic", "--image", "engine:2"], {
      "PATCH /v1/nodes/nod_1": thereupon(() => {
        node = { ...NODE, workloads: [coming] };
        events = [nodeEvent({ id: "evt_2", kind: "update_requested", message: "ann changed it" }), ...events];
      }),
      "GET /v1/nodes/nod_1": (response) => {
        looks += 1;
        if (looks === 3) {
          node = { ...NODE, workloads: [{ ...ENGINE, image: "engine:2", desiredImage: "engine:2" }] };
          events = [nodeEvent({ id: "evt_3", kind: "workload_ready", message: "it is ready" }), ...events];
        }
        response.end(JSON.stringify(node));
      },
    });
    expect(code).toBe(0);
    expect(notes).toMatch(/^ann changed it\nengine: pulling engine:2: 40 %\n/);
    expect(notes).not.toContain("made");
    expect(out).toContain("engine:2");
  });

  test("exits with the reason when the update is rolled back", async () => {
    const { code, notes } = await call(["node", "update", "attic", "--image", "engine:2"], {
      "PATCH /v1/nodes/nod_1": thereupon(() => {
        node = { ...NODE, workloads: [{ ...ENGINE, upToDate: false }] };
        const message = "the update is rolled back: exit code 1";
        events = [nodeEvent({ id: "evt_2", kind: "update_rolled_back", message }), ...events];
      }),
    });
    expect([code, notes]).toEqual([1, expect.stringContaining("rolled back: exit code 1")]);
  });
});

describe("node drain, resume and restart", () => {
  test("send the request, and wait until it takes effect", async () => {
    const drained = await call(["node", "drain", "attic", "--timeout", "30m"], {
      "POST /v1/nodes/nod_1:drain": thereupon(() => {
        node = { ...NODE, status: "drained", workloads: [] };
        events = [nodeEvent({ id: "evt_2", kind: "drained", status: "drained", message: "The last call is over." })];
      }),
    });
    expect([drained.code, sent("POST")]).toEqual([0, { timeoutSeconds: 1800 }]);
    expect(drained.notes).toBe("drained: The last call is over.\n");
    host?.close();
    const resumed = await call(["node", "resume", "nod_1", "--json"], {
      "POST /v1/nodes/nod_1:resume": { body: { ...NODE, status: "starting" } },
    });
    expect(JSON.parse(resumed.out)).toMatchObject({ status: "starting" });
    host?.close();
    const restarted = await call(["node", "restart", "nod_1", "--json", "--wait"], {
      "POST /v1/nodes/nod_1:restart-workload": thereupon(() => {
        node = { ...NODE, workloads: [{ ...ENGINE, generation: 2, desiredGeneration: 2 }] };
      }),
    });
    expect(JSON.parse(restarted.out)).toMatchObject({ workloads: [{ generation: 2 }] });
    expect(host?.seen.find(({ method }) => method === "POST")?.idempotencyKey).toMatch(/^req_/);
  });

  test("stop watching on Ctrl-C without stopping the operation, and say how to check on it", async () => {
    const terminal = fakeTerminal();
    const running = call(
      ["node", "drain", "nod_1"],
      {
        "POST /v1/nodes/nod_1:drain": thereupon(() => {
          node = { ...NODE, status: "draining" };
        }),
      },
      terminal,
    );
    await vi.waitFor(() => expect(host?.seen.filter(({ method }) => method === "GET").length).toBeGreaterThan(2));
    terminal.interrupt();
    const { code, notes } = await running;
    expect([code, notes]).toEqual([130, expect.stringContaining("fairlead node get nod_1")]);
  });
});

describe("node logs", () => {
  const line = (text: string): string => `data: ${JSON.stringify({ at: "2030", stream: "stdout", text })}\n\n`;

  test("shows the requested lines, and replaces control characters", async () => {
    const { code, out } = await call(["node", "logs", "attic", "--tail", "5", "--timestamps"], {
      "GET /v1/nodes/nod_1/logs": (response) =>
        void response.end(`${line("one\u001b[2J")}: still here\n\ndata: [DONE]\n\n`),
    });
    expect([code, out]).toEqual([0, "2030 one\ufffd[2J\n"]);
    expect(host?.seen.at(-1)?.url).toBe("/v1/nodes/nod_1/logs?follow=false&tail=5");
    expect(host?.seen.at(-1)?.headers.accept).toBe("text/event-stream");
  });

  test("follows until Ctrl-C", async () => {
    const terminal = fakeTerminal();
    const answers: Record<string, Answer> = {
      "GET /v1/nodes/nod_1/logs": (response) => void response.write(line("one")),
    };
    const running = call(["node", "logs", "nod_1", "-f"], answers, terminal);
    await vi.waitFor(() => expect(terminal.printed.out).toBe("one\n"));
    terminal.interrupt();
    expect((await running).code).toBe(0);
  });

  test("says so when the stream is cut off", async () => {
    const { code, notes } = await call(["node", "logs", "nod_1"], {
      "GET /v1/nodes/nod_1/logs": (response) => void response.end(line("one")),
    });
    expect([code, notes]).toEqual([1, expect.stringContaining("cut off")]);
  });
});

test("node events shows the history in order, filtered by kind and time", async () => {
  events = [
    nodeEvent({ id: "evt_2", kind: "workload_exited", message: "box ended: out of memory; it is started again" }),
    ...events,
  ];
  const { out } = await call(["node", "events", "attic", "--kind", "workload_exited", "--since", "2030-01-01"]);
  expect(out).toMatch(/made\n.*workload_exited.*out of memory/);
  expect(host?.seen.at(-1)?.url).toContain("kind=workload_exited&since=2030-01-01T00%3A00%3A00.000Z");
});

describe("node versions", () => {
  test("shows what runs, what is desired, and since when", async () => {
    const { out } = await call(["node", "versions"]);
    expect(out).toMatch(/attic +active +1\.2\.3 +engine +1\.0 +engine:1 +sha256:a+ +2030-01-01T00:00:01\.000Z\n/);
    expect((await call(["node", "versions", "--outdated"])).out).toBe("all nodes are up to date\n");
  });

  test("marks an engine that differs from the desired one, and lists it with --outdated", async () => {
    node = { ...NODE, workloads: [{ ...ENGINE, upToDate: false, desiredImage: "engine:2" }] };
    const { out } = await call(["node", "versions", "--outdated"]);
    expect(out).toMatch(/attic.*! desired: engine:2\n/);
    const json = await call(["node", "versions", "--outdated", "--json"]);
    expect(JSON.parse(json.out)).toMatchObject({ nodes: [{ daemonOutdated: false, outdated: true }] });
  });

  test("--outdated omits a node without a daemon", async () => {
    node = { ...NODE, daemonVersion: "", workloads: [{ ...ENGINE, upToDate: false }] };
    expect((await call(["node", "versions", "--outdated"])).out).toBe("all nodes are up to date\n");
    expect((await call(["node", "versions"])).out).toContain("none");
  });

  const offered = (...versions: string[]): Record<string, Answer> => ({
    "GET /v1/daemon-builds": {
      body: { daemonBuilds: versions.map((version) => ({ version })), nextPageToken: "more", serverVersion: "2.0.0" },
    },
  });
  // The command line's version, 1.2.3, does not matter.
  test.each([
    {
      so: "the newest available build",
      daemonVersion: "1.2.3",
      builds: ["1.3.0"],
      cell: "1.2.3 (older than 1.3.0)",
    },
    {
      so: "the server's release, when no build is available",
      daemonVersion: "1.9.0",
      builds: [],
      cell: "1.9.0 (older than 2.0.0)",
    },
    {
      so: "the desired version, even if a newer build is available",
      daemonVersion: "1.3.0",
      desiredDaemonVersion: "1.2.3",
      builds: ["1.4.0"],
      cell: "1.3.0 ! desired: 1.2.3 (not started)",
    },
    {
      so: "the desired version, when it already runs",
      daemonVersion: "1.2.3",
      desiredDaemonVersion: "1.2.3",
      builds: ["1.4.0"],
      cell: null,
    },
    { so: "nothing, before a daemon has enrolled", daemonVersion: "", builds: ["1.4.0"], cell: null },
    { so: "the newest build, when the daemon is newer", daemonVersion: "1.5.0", builds: ["1.4.0"], cell: null },
  ])("compares a daemon with $so", async ({ daemonVersion, desiredDaemonVersion = null, builds, cell }) => {
    node = { ...NODE, daemonVersion, desiredDaemonVersion };
    const { out } = await call(["node", "versions", "--outdated"], offered(...builds));
    if (cell === null) expect(out).toBe("all nodes are up to date\n");
    else expect(out).toContain(` ${cell} `);
    host?.close();
    const { nodes } = JSON.parse((await call(["node", "versions", "--json"], offered(...builds))).out);
    const expectedDaemonVersion = desiredDaemonVersion ?? builds[0] ?? "2.0.0";
    expect(nodes).toMatchObject([{ expectedDaemonVersion, daemonOutdated: cell !== null, outdated: cell !== null }]);
  });

  test("lists the agents on a node, and the desired image of each", async () => {
    node = { ...NODE, workloads: [ENGINE, AGENT_WORKLOAD] };
    const { out } = await call(["node", "versions", "--outdated"]);
    expect(out).toMatch(/engine +1\.0 .*\nattic +active +1\.2\.3 +agent-1 +none +! desired: bot:1\n/);
  });

  test.each([
    ["1.2.3", "1.2.3", false],
    ["1.2.3", "1.10.0", true],
    ["2.0.0", "1.10.0", false],
    ["0.1.0", "0.1.1", true],
  ])("%s is older than %s: %s", (version, release, older) => {
    expect(isOlder(version, release)).toBe(older);
  });
});
