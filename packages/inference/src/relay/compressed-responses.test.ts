import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { MAX_CONVERTED_BYTES } from "@fairlead/dialects/calls/relayed-answer";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CHAT, HostStage } from "../host/host-stage.fixture.ts";
import type { ScriptedCall } from "../testing/scripted-upstream.ts";
import { UPSTREAM_FRAMES, WHOLE } from "./bridged.fixture.ts";
import { JSON_TYPE, SSE } from "./call-relay.fixture.ts";

/** Upstreams that compress, though they were asked for `identity`. */

let stage: HostStage;
beforeEach(async () => {
  stage = new HostStage();
  await stage.open();
});
afterEach(() => stage.close());

const CODINGS = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
] as const;

interface Said {
  readonly status?: number;
  readonly type?: Readonly<Record<string, string>>;
  readonly coding: string;
  readonly pieces: readonly Buffer[];
}

const saying =
  ({ status = 200, type = JSON_TYPE, coding, pieces }: Said) =>
  (far: ScriptedCall): void => {
    far.respond(status, { ...type, "content-encoding": coding });
    for (const piece of pieces) far.write(piece);
    far.end();
  };

const inPieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));

describe.each(CODINGS)("a response in %s", (coding, compress) => {
  test("is decoded if it must be converted, and charged", async () => {
    const pieces = inPieces(compress(Buffer.from(JSON.stringify(WHOLE.responses))), 7);
    stage.place("box", saying({ coding, pieces }), { protocols: ["responses"] });
    const answered = await stage.chat();
    expect(answered.headers.get("content-encoding")).toBeNull();
    expect(await answered.json()).toMatchObject({ choices: [{ message: { content: "Hi ✓" } }] });
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "ok", usage: { outputTokens: 7 } }]);
  });

  test("is decoded if it is a stream that must be converted", async () => {
    const pieces = inPieces(compress(Buffer.from(UPSTREAM_FRAMES.responses.join(""))), 50);
    stage.place("box", saying({ type: SSE, coding, pieces }), { protocols: ["responses"] });
    const answered = await stage.chat({ ...CHAT, stream: true });
    const text = await answered.text();
    expect(text).toContain("Hi");
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    await expect.poll(() => stage.ends).toMatchObject([{ outcome: "ok", usage: { outputTokens: 7 } }]);
  });

  test("is decoded if it is an error", async () => {
    const pieces = [compress(Buffer.from('{"error":{"message":"Too long.","code":"context_length_exceeded"}}'))];
    stage.place("box", saying({ status: 400, coding, pieces }));
    const answered = await stage.chat();
    expect(answered.status).toBe(400);
    expect(await answered.json()).toMatchObject({ error: { message: "Too long.", code: "context_length_exceeded" } });
  });

  test("is decoded if it is turned into a stream", async () => {
    const pieces = [compress(Buffer.from(JSON.stringify(WHOLE.chat)))];
    stage.place("box", saying({ coding, pieces }));
    const answered = await stage.chat({ ...CHAT, stream: true });
    expect(answered.headers.get("content-encoding")).toBeNull();
    expect(await answered.text()).toContain('"content":"Hi ✓"');
  });

  test("is retried on the next upstream and costs nothing if it is truncated or invalid", async () => {
    const bytes = compress(Buffer.from(JSON.stringify(WHOLE.responses)));
    const protocols = ["responses"] as const;
    stage.place("cut", saying({ coding, pieces: [bytes.subarray(0, -9)] }), { protocols, rank: 0 });
    stage.place("wrong", saying({ coding, pieces: [Buffer.from("not compressed")] }), { protocols, rank: 1 });
    stage.place("good", saying({ coding, pieces: [bytes] }), { protocols, rank: 2 });
    const answered = await stage.chat();
    expect(answered.headers.get("x-fairlead-upstream")).toBe("node:good");
  });

  test("fails with 502 if too long after decompression", async () => {
    const bytes = compress(Buffer.alloc(MAX_CONVERTED_BYTES + 1, " "));
    expect(bytes.length).toBeLessThan(64 * 1024);
    stage.place("box", saying({ coding, pieces: [bytes] }), { protocols: ["responses"] });
    const answered = await stage.chat();
    expect(answered.status).toBe(502);
    expect(await answered.json()).toMatchObject({ error: { message: expect.stringContaining("more than") as string } });
    await expect.poll(() => stage.ends).toMatchObject([{ usage: null, cost: 0 }]);
  });
});

test("a response that is not converted is forwarded byte for byte, still compressed", async () => {
  const bytes = gzipSync(JSON.stringify(WHOLE.chat));
  stage.place("box", saying({ coding: "gzip", pieces: inPieces(bytes, 11) }));
  const answered = await stage.chat();
  expect(answered.headers.get("content-encoding")).toBe("gzip");
  expect(await answered.json()).toEqual(WHOLE.chat);
});

test.each(["compress", "gzip, br"])(
  "an unsupported coding (%s) fails with 502 if the response must be decoded",
  async (coding) => {
    stage.place("box", saying({ coding, pieces: [Buffer.from("x")] }), { protocols: ["responses"] });
    const answered = await stage.chat();
    expect(answered.status).toBe(502);
    expect(await answered.json()).toMatchObject({
      error: { message: "node:box: returned a content-encoding that is not supported" },
    });
  },
);

test("a caller that does not read pauses decoding and the upstream", async () => {
  const line = `event: response.output_text.delta\ndata: ${JSON.stringify({ type: "response.output_text.delta", delta: "x".repeat(60_000) })}\n\n`;
  const bytes = gzipSync(line.repeat(2000));
  const upstream = stage.place("box", undefined, { protocols: ["responses"] });
  const arrived = upstream.nextCall();
  const answering = stage.chat({ ...CHAT, stream: true });
  const far = (await arrived) as ScriptedCall;
  far.respond(200, { ...SSE, "content-encoding": "gzip" });
  for (const piece of inPieces(bytes, 1000)) far.write(piece);
  const reader = (await answering).body?.getReader();
  await reader?.read();
  await expect.poll(() => stage.host?.counters.relayedBytes ?? 0).toBeGreaterThan(0);
  expect(stage.host?.counters.relayedBytes).toBeLessThan(line.length * 2000);
  await reader?.cancel();
  await expect.poll(() => stage.ends).toMatchObject([{ outcome: "client_left" }]);
});
