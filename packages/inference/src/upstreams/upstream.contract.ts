import type { IncomingHttpHeaders } from "node:http";
import type { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest, UpstreamTransport } from "./upstream.ts";

/** The far end of one call, played by the test. */
export interface FarEnd {
  /** The request as it arrived, once it is whole. */
  readonly request: Promise<{ readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }>;
  respond(status: number, headers: Readonly<Record<string, string>>): void;
  write(text: string): void;
  end(): void;
  /** Breaks off without a proper end. */
  cut(): void;
  readonly closed: boolean;
}

export interface UpstreamFixture {
  readonly upstream: UpstreamTransport;
  /** Resolves with the next call that arrives. */
  nextCall(): Promise<FarEnd>;
  close(): Promise<void>;
}

class Recorder implements UpstreamHandler {
  readonly log: string[] = [];
  error: DomainError | undefined;
  takes = true;

  onHeaders(status: number, headers: IncomingHttpHeaders): void {
    this.log.push(`headers ${status} ${headers["content-type"]}`);
  }

  onData(chunk: Buffer): boolean {
    this.log.push(chunk.toString());
    return this.takes;
  }

  onEnd(): void {
    this.log.push("end");
  }

  onError(error: DomainError): void {
    this.error = error;
    this.log.push("error");
  }

  get text(): string {
    return this.log.join("|");
  }
}

const REQUEST: UpstreamRequest = {
  method: "POST",
  path: "/chat/completions",
  headers: { "content-type": "application/json", "content-length": "7" },
  body: [Buffer.from('{"a"'), Buffer.from(":1}")],
};
const TEXT = { "content-type": "text/plain" };

/** What every way to an upstream must hold to. */
export function upstreamContract(name: string, open: () => Promise<UpstreamFixture>): void {
  describe(`${name} as an upstream`, () => {
    let fixture: UpstreamFixture;
    let recorder: Recorder;

    beforeEach(async () => {
      fixture = await open();
      recorder = new Recorder();
    });

    afterEach(async () => {
      await fixture.close();
    });

    async function begin(): Promise<{ call: UpstreamCall; far: FarEnd }> {
      const arrived = fixture.nextCall();
      const call = fixture.upstream.dispatch(REQUEST, recorder);
      expect(recorder.log).toEqual([]);
      return { call, far: await arrived };
    }

    test("sends the complete request", async () => {
      const { call, far } = await begin();
      const request = await far.request;
      expect(request.path).toBe(`/v1${REQUEST.path}`);
      expect(request.headers).toMatchObject(REQUEST.headers);
      expect(request.body.toString()).toBe('{"a":1}');
      call.abort();
    });

    test("delivers status, headers and data in order, then one end", async () => {
      const { far } = await begin();
      far.respond(201, TEXT);
      far.write("one");
      await vi.waitFor(() => expect(recorder.text).toBe("headers 201 text/plain|one"));
      far.write("two");
      far.end();
      await vi.waitFor(() => expect(recorder.text).toBe("headers 201 text/plain|one|two|end"));
    });

    test("reports an upstream that breaks off before its headers", async () => {
      const { far } = await begin();
      far.cut();
      await vi.waitFor(() => expect(recorder.text).toBe("error"));
      expect(recorder.error?.code).toBe("upstream_failed");
    });

    test("reports an upstream that breaks off later, after delivering what it sent", async () => {
      const { far } = await begin();
      far.respond(200, TEXT);
      far.write("half");
      await vi.waitFor(() => expect(recorder.text).toBe("headers 200 text/plain|half"));
      far.cut();
      await vi.waitFor(() => expect(recorder.text).toBe("headers 200 text/plain|half|error"));
      expect(recorder.error?.code).toBe("upstream_failed");
    });

    test("stops the remote work on abort before the headers, without further callbacks", async () => {
      const { call, far } = await begin();
      call.abort();
      await vi.waitFor(() => expect(far.closed).toBe(true));
      expect(recorder.log).toEqual([]);
    });

    test("stops the remote work on abort in the middle of a response", async () => {
      const { call, far } = await begin();
      far.respond(200, TEXT);
      far.write("one");
      await vi.waitFor(() => expect(recorder.text).toBe("headers 200 text/plain|one"));
      call.abort();
      await vi.waitFor(() => expect(far.closed).toBe(true));
      expect(recorder.text).toBe("headers 200 text/plain|one");
    });

    test("delivers nothing while paused, and everything after resuming", async () => {
      recorder.takes = false;
      const { call, far } = await begin();
      far.respond(200, TEXT);
      far.write("one");
      await vi.waitFor(() => expect(recorder.text).toBe("headers 200 text/plain|one"));
      far.write("two");
      far.end();
      await new Promise(setImmediate);
      expect(recorder.text).toBe("headers 200 text/plain|one");
      recorder.takes = true;
      call.resume();
      await vi.waitFor(() => expect(recorder.text).toBe("headers 200 text/plain|one|two|end"));
    });
  });
}
