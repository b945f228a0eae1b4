import { LOGS_WORKLOAD } from "@fairlead/protocol/daemon-link";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { NodeRequest } from "./testing/node-request.ts";
import { CallLog, type OpenTunnel, openTunnel } from "./tunnel.fixture.ts";

const HEAD = { workload: "engine", method: "POST", path: "/v1/a?b=c", headers: { "x-latin": "caf\u{e9}", empty: "" } };
const GET = { ...HEAD, method: "GET", headers: {}, body: [] };
/** Several times what a node takes before anybody there reads. */
const LARGE = 3 * 1024 * 1024;

describe("a tunnel", () => {
  let open: OpenTunnel;
  let log: CallLog;

  beforeEach(async () => {
    open = await openTunnel();
    log = new CallLog();
  });

  afterEach(() => open.close());

  /** Has a node answer, and goes on when the answer is there. */
  async function answered(request: NodeRequest, text: string): Promise<void> {
    request.respond(200);
    request.write(text);
    await vi.waitFor(() => expect(log.text).toBe(`200|${text}`));
  }

  test("transmits a call's head and body completely", async () => {
    const arrived = open.nextRequest();
    open.tunnel.open({ ...HEAD, body: [Buffer.from("on"), Buffer.alloc(0), Buffer.from("e")] }, log);
    expect(log.told).toEqual([]);
    const request = await arrived;
    expect(request).toMatchObject({ workload: "engine", method: "POST", path: "/v1/a?b=c" });
    expect(request.headers["empty"]).toBe("");
    expect((await request.takeBody()).toString()).toBe("one");
    request.respond(201, { "content-type": "text/plain", "x-latin": "caf\u{e9}" });
    request.end("two");
    await vi.waitFor(() => expect(log.text).toBe("201|two|end"));
    expect(log.headers).toMatchObject({ "content-type": "text/plain", "x-latin": "caf\u{e9}" });
  });

  test("sends a large body at the node's pace", async () => {
    const body = Array.from({ length: 24 }, (_, at) => Buffer.alloc(LARGE / 24, at));
    const arrived = open.nextRequest();
    const call = open.tunnel.openStream({ ...HEAD, kind: "body" }, log);
    const waits = body.map((piece) => {
      const pieces = [piece.subarray(0, 64 * 1024), piece.subarray(64 * 1024)];
      return pieces.map((one) => call.write(one)).includes(false);
    });
    call.end();
    expect(waits.at(-1)).toBe(true);
    const request = await arrived;
    expect(log.told).toEqual([]);
    expect((await request.takeBody()).equals(Buffer.concat(body))).toBe(true);
    request.respond(200);
    request.end();
    await vi.waitFor(() => expect(log.text).toBe("200|end"));
    const listed = open.nextRequest();
    open.tunnel.open({ ...HEAD, body }, new CallLog());
    expect((await (await listed).takeBody()).equals(Buffer.concat(body))).toBe(true);
  });

  test("notifies the writer when the node has read what was written", async () => {
    const arrived = open.nextRequest();
    const call = open.tunnel.openStream({ ...HEAD, kind: "body" }, log);
    let written = 0;
    while (call.write(Buffer.alloc(64 * 1024))) written += 1;
    expect(written * 64 * 1024).toBeLessThan(LARGE);
    const request = await arrived;
    expect(log.told).toEqual([]);
    const body = request.takeBody();
    await vi.waitFor(() => expect(log.told).toEqual(["drain"]));
    call.end();
    expect(await body).toHaveLength((written + 1) * 64 * 1024);
  });

  test("ends a call whose response arrives before its body was read, on the node as well", async () => {
    for (const kind of ["list", "stream", "ended stream"]) {
      log = new CallLog();
      const arrived = open.nextRequest();
      if (kind === "list") open.tunnel.open({ ...HEAD, body: [Buffer.alloc(LARGE)] }, log);
      else {
        const call = open.tunnel.openStream({ ...HEAD, kind: "body" }, log);
        for (let at = 0; at < LARGE; at += 64 * 1024) call.write(Buffer.alloc(64 * 1024));
        if (kind === "ended stream") call.end();
      }
      const request = await arrived;
      request.respond(413);
      request.end("too much");
      await vi.waitFor(() => expect(log.text).toBe("413|too much|end"));
      await vi.waitFor(() => expect(request.isClosed).toBe(true));
    }
    await open.hub.drain("a");
  });

  test("forwards an abort to the node immediately, before and during the response", async () => {
    for (const isAnswered of [false, true]) {
      log = new CallLog();
      const arrived = open.nextRequest();
      const call = open.tunnel.open({ ...HEAD, body: [Buffer.alloc(LARGE)] }, log);
      const request = await arrived;
      if (isAnswered) await answered(request, "one");
      call.abort();
      call.abort();
      call.resume();
      await vi.waitFor(() => expect(request.isClosed).toBe(true));
      expect(log.text).toBe(isAnswered ? "200|one" : "");
    }
    await open.hub.drain("a");
  });

  test("carries a WebSocket in both directions, including its end", async () => {
    const arrived = open.nextRequest();
    const call = open.tunnel.openStream({ ...HEAD, kind: "web-socket" }, log);
    call.write(Buffer.from("early "));
    const request = await arrived;
    expect(request.method).toBe("POST");
    const said = request.takeBody();
    await answered(request, "one");
    call.write(Buffer.from("late"));
    call.end();
    expect((await said).toString()).toBe("early late");
    request.end("two");
    await vi.waitFor(() => expect(log.text).toBe("200|one|two|end"));
  });

  test("fails refused calls only after returning them to the caller, and reports nothing for aborted calls", async () => {
    open.hub.disconnect("a");
    const aborted = new CallLog();
    const streamed = new CallLog();
    open.tunnel.open(GET, log);
    const stream = open.tunnel.openStream({ ...HEAD, kind: "body" }, streamed);
    stream.write(Buffer.from("a"));
    stream.end();
    stream.resume();
    open.tunnel.open(GET, aborted).abort();
    expect([log.told, streamed.told]).toEqual([[], []]);
    await vi.waitFor(() =>
      expect([log.text, streamed.text]).toEqual(Array(2).fill(expect.stringMatching(/^failed: /))),
    );
    expect(aborted.told).toEqual([]);
  });

  test("is idle when no call to a workload is running, even while logs are read", async () => {
    const reading = open.nextRequest();
    open.tunnel.open({ ...GET, workload: LOGS_WORKLOAD }, new CallLog());
    await reading;
    const arrived = open.nextRequest();
    const call = open.tunnel.open(GET, log);
    const request = await arrived;
    let isIdle = false;
    const idle = open.hub.drain("a").then(() => {
      isIdle = true;
    });
    await answered(request, "one");
    expect(isIdle).toBe(false);
    call.abort();
    await idle;
  });

  test("closes after its last call when it is replaced, or immediately if none is running", async () => {
    const arrived = open.nextRequest();
    open.tunnel.open(GET, log);
    const request = await arrived;
    await open.nodes.connect("a");
    await answered(request, "one");
    expect(open.node.isClosed).toBe(false);
    request.end("two");
    await vi.waitFor(() => expect(log.text).toBe("200|one|two|end"));
    await vi.waitFor(() => expect(open.node.isClosed).toBe(true));
    const idle = await open.nodes.connect("b");
    await open.nodes.connect("b");
    await vi.waitFor(() => expect(idle.isClosed).toBe(true));
  });
});
