import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FRAME_FLAG, FRAME_TYPE, type FrameHead, FrameReader, writeFrameHead, YamuxViolation } from "./frames.ts";
import { frame } from "./yamux.fixture.ts";

type Told = FrameHead & { payload: string; isWhole: boolean };

class Recorder {
  readonly told: Told[] = [];

  onFrame(head: FrameHead): void {
    this.told.push({ ...head, payload: "", isWhole: head.type !== FRAME_TYPE.data || head.length === 0 });
  }

  onPayload(chunk: Buffer, isLast: boolean): void {
    const last = this.told.at(-1);
    if (last === undefined || last.isWhole || chunk.length === 0) throw new Error("a payload of no frame");
    last.payload += chunk.toString("latin1");
    last.isWhole = isLast;
  }
}

const anyFrame = fc.record({
  type: fc.constantFrom(...Object.values(FRAME_TYPE)),
  flags: fc.integer({ min: 0, max: 0xffff }),
  streamId: fc.integer({ min: 0, max: 0xffff_ffff }),
  number: fc.integer({ min: 0, max: 0xffff_ffff }),
  payload: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
});

describe("frames", () => {
  test("match the yamux specification", () => {
    const into = Buffer.alloc(14, 0xee);
    const head = { type: FRAME_TYPE.windowUpdate, flags: FRAME_FLAG.syn | FRAME_FLAG.rst, streamId: 3, length: 258 };
    expect(writeFrameHead(head, into, 1)).toBe(13);
    expect(into.toString("hex")).toBe(`ee${"00"}${"01"}${"0009"}${"00000003"}${"00000102"}ee`);
  });

  test("are read the same however they are split", () => {
    fc.assert(
      fc.property(fc.array(anyFrame), fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }), (frames, sizes) => {
        const sent = frames.map(({ number, payload, ...head }) => ({
          ...head,
          length: head.type === FRAME_TYPE.data ? payload.length : number,
          payload: head.type === FRAME_TYPE.data ? payload.toString("latin1") : "",
          isWhole: true,
        }));
        const bytes = Buffer.concat(sent.map((one) => frame(one, Buffer.from(one.payload, "latin1"))));
        const recorder = new Recorder();
        const reader = new FrameReader(recorder);
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          reader.push(bytes.subarray(at, at + size));
          at += size;
        }
        expect(recorder.told).toEqual(sent);
      }),
    );
  });

  test("can be read byte by byte", () => {
    const recorder = new Recorder();
    const reader = new FrameReader(recorder);
    for (const byte of frame({ type: FRAME_TYPE.data, streamId: 7 }, Buffer.from("hello"))) {
      reader.push(Buffer.from([byte]));
    }
    const head = { type: FRAME_TYPE.data, flags: 0, streamId: 7, length: 5 };
    expect(recorder.told).toEqual([{ ...head, payload: "hello", isWhole: true }]);
  });

  test.each([
    ["version", 0, 1],
    ["type", 1, 4],
  ])("of an unknown %s are rejected", (_what, at, value) => {
    const bytes = frame({ type: FRAME_TYPE.ping });
    bytes[at] = value;
    const reader = new FrameReader(new Recorder());
    reader.push(bytes.subarray(0, 11));
    expect(() => reader.push(bytes.subarray(11))).toThrow(YamuxViolation);
  });

  test("are no longer reported once the reader stops, even in the middle of a read", () => {
    const recorder = new Recorder();
    const reader: FrameReader = new FrameReader({
      onFrame: (head) => {
        recorder.onFrame(head);
        reader.stop();
      },
      onPayload: (chunk, isLast) => recorder.onPayload(chunk, isLast),
    });
    reader.push(Buffer.concat([frame({ type: FRAME_TYPE.ping }), frame({ type: FRAME_TYPE.ping })]));
    reader.push(frame({ type: FRAME_TYPE.ping }));
    expect(recorder.told).toHaveLength(1);
  });
});
