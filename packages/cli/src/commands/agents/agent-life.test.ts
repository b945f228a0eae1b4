import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AGENT, agentEvent, NO_RUNTIME, NODE_IDS } from "../../testing/agent.ts";
import { AgentHost } from "../../testing/agent-host.ts";
import { fakeTerminal } from "../../testing/fake-terminal.ts";

const START = "POST /v1/agents/agt_1:start";
const STOP = "POST /v1/agents/agt_1:stop";
const LOOK = "GET /v1/agents/agt_1";

let host: AgentHost;
beforeEach(() => {
  host = new AgentHost();
  host.agent = { ...AGENT, lifecycleState: "created", runtime: { ...NO_RUNTIME, message: "Not started." } };
});
afterEach(() => host.close());

const started = agentEvent({
  id: "evt_2",
  kind: "start_requested",
  lifecycleState: "starting",
  message: "ann started it.",
});
const runtime = (message: string): typeof AGENT.runtime => ({ ...AGENT.runtime, message });
const starting = (message: string): (() => void) => {
  return () => host.become({ lifecycleState: "starting", runtime: runtime(message) });
};

describe("agent start", () => {
  test("shows each step once, and the pull progress in steps, until the agent runs", async () => {
    const ready = agentEvent({
      id: "evt_3",
      kind: "reported_ready",
      lifecycleState: "running",
      message: "Ready.",
    });
    const { code, out, notes } = await host.call(["start", "agt_1"], {
      [START]: host.thereupon({ lifecycleState: "starting", runtime: runtime("Waiting for Attic.") }, started),
      [LOOK]: host.onLooks(starting("pulling x:1: 42 %"), starting("pulling x:1: 48 %"), () =>
        host.become({ lifecycleState: "running", runtime: AGENT.runtime }, ready),
      ),
    });
    expect(code).toBe(0);
    expect(notes).toBe("starting: ann started it.\nstarting: pulling x:1: 40 %\nrunning: Ready.\n");
    expect(out).toMatch(/state +running/);
  });

  test.each(["failed", "stopped"] as const)("exits with the reason when the agent is %s", async (lifecycleState) => {
    const message = "Image \u001b[31mx cannot be pulled.";
    const { code, out, notes } = await host.call(["start", "agt_1"], {
      [START]: host.thereupon({ lifecycleState, runtime: runtime(message) }, started),
    });
    expect([code, out]).toEqual([1, ""]);
    expect(notes).toContain(`The agent is ${lifecycleState}: Image \ufffd[31mx cannot be pulled.`);
    expect(notes).toContain("fairlead agent logs agt_1");
  });

  test("exits when the agent keeps ending, and shows how its last run ended", async () => {
    const crashing = { ...runtime("ended: exit code 1 (4 in a row)"), restartCount: 3 };
    const { code, notes } = await host.call(["start", "agt_1"], {
      [START]: host.thereupon({ lifecycleState: "starting", runtime: crashing }, started),
    });
    expect([code, notes]).toEqual([
      1,
      expect.stringContaining("The agent is starting: ended: exit code 1 (4 in a row)\n"),
    ]);
    expect(notes).toContain("keeps retrying");
  });

  test("exits when the node cannot pull the image, and shows each failure once", async () => {
    const message = "cannot pull x:1: no such image";
    const failed = ["evt_3", "evt_4", "evt_5"].map((id) => agentEvent({ id, kind: "step_failed", message }));
    const { code, notes } = await host.call(["start", "agt_1"], {
      [START]: host.thereupon(
        { lifecycleState: "starting", runtime: runtime(message) },
        started,
        ...failed.slice(0, 2),
      ),
      [LOOK]: host.onLooks(
        () => {},
        () => host.become({}, ...failed.slice(2)),
      ),
    });
    expect([code, notes.split(message)]).toEqual([1, expect.objectContaining({ length: 5 })]);
    expect(notes).toContain(`fairlead: The agent is starting: ${message}\nFairlead keeps retrying.`);
  });

  test("waits no longer than --timeout", async () => {
    const { code, notes } = await host.call(["start", "agt_1", "--timeout", "1s"], {
      [START]: host.thereupon({ lifecycleState: "starting", runtime: runtime("Waiting for Attic.") }, started),
    });
    expect([code, notes]).toEqual([1, expect.stringContaining("fairlead agent events agt_1")]);
    expect((await host.call(["start", "agt_1", "--timeout", "soon"])).code).toBe(2);
    expect(host.seen).toEqual([]);
  });

  test("names the command that sets each missing secret", async () => {
    const missingSecrets = [
      { name: "SLACK_APP_TOKEN", connectorSlug: "slack", stale: false },
      { name: "tls.key", connectorSlug: null, stale: true },
    ];
    const error = { message: "Set these first: SLACK_APP_TOKEN, tls.key.", code: "missing_secrets", missingSecrets };
    const { code, notes } = await host.call(["start", "Bot"], { [START]: { status: 409, body: { error } } });
    expect(code).toBe(1);
    expect(notes).toContain("Set these first: SLACK_APP_TOKEN, tls.key. (missing_secrets)\n");
    expect(notes).toContain("\n  fairlead agent secret put agt_1 SLACK_APP_TOKEN\n");
    expect(notes).toContain("\n  fairlead agent secret put agt_1 tls.key\n");
  });

  test.each([[["--json"]], [["--no-wait"]]])("with %j returns immediately", async (how) => {
    const { code, notes } = await host.call(["start", "agt_1", ...how], {
      [START]: host.thereupon({ lifecycleState: "starting" }, started),
    });
    expect([code, notes]).toEqual([0, ""]);
    expect(host.seen.filter(({ url }) => url === "/v1/agents/agt_1")).toEqual([]);
  });

  test("stops watching on Ctrl-C without stopping the agent, and says how to check on it", async () => {
    const terminal = fakeTerminal();
    const answers = { [START]: host.thereupon({ lifecycleState: "starting" }, started) };
    const running = host.call(["start", "agt_1"], answers, terminal);
    await vi.waitFor(() => expect(terminal.printed.notes).toContain("ann started it."));
    terminal.interrupt();
    expect((await running).code).toBe(130);
    expect(terminal.printed.notes).toContain("fairlead agent get agt_1");
    expect(host.sent("POST")).toEqual([{}]);
  });

  test("shows other errors unchanged", async () => {
    const error = { message: "No daemon has enrolled for node Attic yet.", code: "node_not_enrolled" };
    const { code, notes } = await host.call(["start", "agt_1"], { [START]: { status: 409, body: { error } } });
    expect([code, notes]).toEqual([1, `fairlead: ${error.message} (node_not_enrolled)\n`]);
  });
});

describe("agent stop", () => {
  test("waits until the node has stopped the agent", async () => {
    host.agent = AGENT;
    const { code, out, notes } = await host.call(["stop", "agt_1"], {
      [STOP]: host.thereupon({ lifecycleState: "stopping", runtime: runtime("Waiting for node Attic to stop it.") }),
      [LOOK]: host.onLooks(
        () => {},
        () => host.become({ lifecycleState: "stopped", runtime: NO_RUNTIME }),
      ),
    });
    expect(code).toBe(0);
    expect(notes).toBe("stopping: Waiting for node Attic to stop it.\nstopped: Stopped.\n");
    expect(out).toMatch(/state +stopped/);
  });

  test("finishes immediately for an agent that never ran", async () => {
    const { code, out } = await host.call(["stop", "agt_1"], { [STOP]: { body: host.agent } });
    expect([code, out]).toEqual([0, expect.stringMatching(/state +created/)]);
  });
});

describe("agent move", () => {
  const MOVE = "PATCH /v1/agents/agt_1";
  const runtimeProvider = `node:${NODE_IDS.cellar}`;

  test("waits until the agent runs on the new node; running on the old one is not enough", async () => {
    host.agent = AGENT;
    const { code, notes } = await host.call(["move", "agt_1", "cellar"], {
      [MOVE]: host.thereupon({ runtimeProvider }),
      [LOOK]: host.onLooks(
        () => {},
        () => host.become({ runtime: { ...AGENT.runtime, nodeId: NODE_IDS.cellar, message: "There it is." } }),
      ),
    });
    expect(code).toBe(0);
    expect(host.sent("PATCH")).toEqual([{ runtimeProvider }]);
    expect(notes).toContain("running: There it is.");
  });

  test("does not count restarts on the old node as failures on the new one", async () => {
    const former = { ...AGENT.runtime, restartCount: 7, message: "Waiting for node Attic to stop it." };
    host.agent = AGENT;
    const { code } = await host.call(["move", "agt_1", "cellar"], {
      [MOVE]: host.thereupon({ runtimeProvider, lifecycleState: "starting", runtime: former }),
      [LOOK]: host.onLooks(
        () => {},
        () => host.become({ lifecycleState: "running", runtime: { ...AGENT.runtime, nodeId: NODE_IDS.cellar } }),
      ),
    });
    expect(code).toBe(0);
  });

  test("finishes immediately for an agent that is not supposed to run", async () => {
    const { code, out } = await host.call(["move", "agt_1", "cellar"], { [MOVE]: host.thereupon({ runtimeProvider }) });
    expect([code, out]).toEqual([0, expect.stringContaining(runtimeProvider)]);
  });

  test("--force asks not to wait for an unreachable node; without it the error is shown", async () => {
    const error = { message: "Node Attic does not answer.", code: "node_unreachable" };
    const refused = await host.call(["move", "agt_1", "cellar"], { [MOVE]: { status: 409, body: { error } } });
    expect([refused.code, refused.notes]).toEqual([1, expect.stringContaining("node_unreachable")]);
    await host.call(["move", "agt_1", "cellar", "--force", "--no-wait"], { [MOVE]: { body: AGENT } });
    expect(host.sent("PATCH")).toEqual([{ runtimeProvider, force: true }]);
  });
});
