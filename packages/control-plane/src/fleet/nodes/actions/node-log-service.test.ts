import { text } from "node:stream/consumers";
import { LOGS_WORKLOAD, TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { systemClock } from "@fairlead/protocol/values/clock";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SignInSessions } from "../../../access/auth/authenticate.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { BoundCounters } from "../../../telemetry/bounds/bound-counters.ts";
import { FakeNodes } from "../../tunnel/testing/fake-node.ts";
import type { NodeRequest } from "../../tunnel/testing/node-request.ts";
import { TunnelHub } from "../../tunnel/tunnel-hub.ts";
import { type NodeFixture, nodeFixture, OWNER, STRANGER, VIEWER } from "../node.fixture.ts";
import { NodeLogService } from "./node-log-service.ts";
import { WorkloadLogs } from "./workload-logs.ts";

const CALLER: UserPrincipal = { ...OWNER, sessionId: "ses_1" };
const ALL = { workload: "engine", follow: false };
const FOLLOW = { workload: "engine", follow: true };

let fixture: NodeFixture;
let hub: TunnelHub;
let daemons: FakeNodes;
let workloadLogs: WorkloadLogs;
let logs: NodeLogService;
let signedIn: boolean;
let nodeId: string;

beforeEach(async () => {
  fixture = await nodeFixture();
  hub = new TunnelHub({ log: pino({ level: "silent" }), clock: systemClock, bounds: new BoundCounters() });
  signedIn = true;
  const sessions: SignInSessions = {
    find: () => (signedIn ? { userId: OWNER.userId, platformAdmin: false } : null),
  };
  const { nodes, audit, access } = fixture;
  workloadLogs = new WorkloadLogs({ sessions, daemons: hub });
  logs = new NodeLogService({ db: fixture.store.db, nodes, audit, access, workloadLogs });
  nodeId = (await fixture.createEnrolled("Box")).node.id;
});

afterEach(async () => {
  workloadLogs.close();
  hub.close();
  daemons.close();
  await fixture.close();
});

/** A daemon that answers like this. */
async function daemon(answer: (request: NodeRequest) => void): Promise<void> {
  const node = await daemons.connect(nodeId);
  node.onRequest = answer;
}

async function read(): Promise<string[]> {
  const rows = fixture.store.db.selectFrom("audit_event").select("action").where("action", "=", "node.logs");
  return (await rows.execute()).map(({ action }) => action);
}

describe("the logs of a node", () => {
  beforeEach(async () => {
    daemons = new FakeNodes(hub);
    await daemons.listen();
  });

  it("are requested from its daemon with the caller's options, and the read is recorded", async () => {
    let asked: NodeRequest | undefined;
    await daemon((request) => {
      asked = request;
      request.respond(200);
      request.end("one\n");
    });
    const since = "2026-01-01T00:00:00Z";
    const lines = await logs.open(CALLER, nodeId, { ...ALL, since, tail: 5 });
    expect(await text(lines)).toBe("one\n");
    expect(asked).toMatchObject({
      path: "/engine?follow=false&since=2026-01-01T00%3A00%3A00Z&tail=5",
      workload: LOGS_WORKLOAD,
    });
    expect(await read()).toEqual(["node.logs"]);
  });

  it("can be read while the node drains, and do not delay a drain", async () => {
    await daemon((request) => request.respond(200));
    const lines = await logs.open(CALLER, nodeId, FOLLOW);
    await hub.drain(nodeId);
    expect(hub.get(nodeId)).toBeNull();
    lines.destroy();
    expect((await logs.open(CALLER, nodeId, FOLLOW)).destroyed).toBe(false);
  });

  it("are stopped at the daemon when the reader disconnects", async () => {
    let asked: NodeRequest | undefined;
    await daemon((request) => {
      asked = request;
      request.respond(200);
    });
    (await logs.open(CALLER, nodeId, FOLLOW)).destroy();
    await expect.poll(() => asked?.isClosed).toBe(true);
  });

  it("are read no faster than the reader consumes them", async () => {
    let sent = 0;
    await daemon((request) => {
      request.respond(200);
      const fill = (): void => {
        while (sent < 1e8 && request.write("x".repeat(10_000))) sent += 10_000;
      };
      request.onDrain(fill);
      fill();
    });
    const lines = await logs.open(CALLER, nodeId, FOLLOW);
    let before = -1;
    const still = (): boolean => {
      const same = sent === before;
      before = sent;
      return same;
    };
    await expect.poll(still, { interval: 100 }).toBe(true);
    expect(sent).toBeLessThan(2e6);
    lines.destroy();
  });

  it.each([
    ["is signed out", () => void (signedIn = false)],
    ["loses access to the node", () => fixture.store.db.deleteFrom("node").execute()],
  ])("end within about a second when the reader %s", async (_how, lose) => {
    await daemon((request) => request.respond(200));
    const lines = await logs.open(CALLER, nodeId, FOLLOW);
    await lose();
    await expect.poll(() => lines.destroyed, { timeout: 4000 }).toBe(true);
  });

  it("do not look complete when the daemon breaks off", async () => {
    await daemon((request) => {
      request.respond(200);
      request.write("half");
      request.cut();
    });
    await expect(logs.open(CALLER, nodeId, FOLLOW).then(text)).rejects.toThrow();
  });

  it("are refused with the reason: no daemon, no container, an unavailable daemon, no permission", async () => {
    await expect(logs.open(CALLER, nodeId, ALL)).rejects.toMatchObject({ code: "unavailable" });
    let fault = "no_running_engine";
    await daemon((request) => {
      request.respond(503, { [TUNNEL_FAULT_HEADER]: fault });
      request.end();
    });
    await expect(logs.open(CALLER, nodeId, ALL)).rejects.toMatchObject({ code: "no_running_engine" });
    fault = "unavailable";
    await expect(logs.open(CALLER, nodeId, ALL)).rejects.toMatchObject({ code: "unavailable" });
    await expect(logs.open(VIEWER, nodeId, ALL)).rejects.toMatchObject({ code: "permission_denied" });
    await expect(logs.open(STRANGER, nodeId, ALL)).rejects.toMatchObject({ code: "not_found" });
    expect(await read()).toEqual([]);
  });
});
