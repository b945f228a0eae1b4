import fc from "fast-check";
import { expect, test } from "vitest";
import { StreamHandlerFailed } from "./session.ts";
import { FIRST_WINDOW_BYTES } from "./stream.ts";
import { frame, LoneSession, StreamLog, turns } from "./yamux.fixture.ts";

const hostileFrame = fc
  .record({
    type: fc.constantFrom(0, 0, 0, 1, 1, 2, 3),
    flags: fc.oneof(fc.constantFrom(0, 2, 4, 8, 2, 4), fc.nat(0xffff)),
    streamId: fc.oneof(fc.constantFrom(1, 1, 3, 3, 5, 0, 2), fc.nat(0xffff_ffff)),
    length: fc.oneof(fc.constantFrom(0, 1, FIRST_WINDOW_BYTES, 0xffff_ffff), fc.nat(0xffff_ffff)),
    payload: fc.uint8Array({ maxLength: 50 }),
    isHonest: fc.integer({ min: 0, max: 9 }).map((roll) => roll > 0),
  })
  .map(({ type, flags, streamId, length, payload, isHonest }) => {
    const head = { type: type as 0, flags: isHonest ? flags & ~1 : flags, streamId };
    if (type === 0) return frame(isHonest ? head : { ...head, length }, Buffer.from(payload));
    return frame({ ...head, length: type === 3 && isHonest ? 0 : length });
  });

/** What a stream may be told: bytes, then one end, then one close. */
const IN_ORDER = /^(?:x|drain|end\b|\|)*(?:closed|failed: [^|]*)?$/;

test("whatever a hostile side sends, no handler fails, events stay in order and data stays within the windows", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(hostileFrame, { maxLength: 40 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      async (frames, sizes) => {
        const lone = new LoneSession("opens");
        const logs = [true, false].map((takes) => {
          const log = new StreamLog();
          log.takes = takes;
          log.onData = (chunk) => {
            log.told.push("x".repeat(chunk.length > 0 ? 1 : 0));
            return takes;
          };
          const stream = lone.session.open();
          stream.handle(log);
          stream.write(Buffer.from("hello"));
          return log;
        });
        const bytes = Buffer.concat(frames);
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] ?? 1;
          lone.far.write(bytes.subarray(at, at + size));
          at += size;
        }
        await turns(4);
        expect(lone.closed.length).toBeLessThanOrEqual(1);
        expect(lone.closed).not.toContain(new StreamHandlerFailed(null).message);
        for (const log of logs) expect(log.text).toMatch(IN_ORDER);
        expect(lone.session.isClosed).toBe(lone.closed.length === 1);
        lone.session.destroy();
        for (const log of logs) expect(log.told.filter((one) => /^(closed|failed)/.test(one))).toHaveLength(1);
      },
    ),
    { numRuns: 300 },
  );
});
