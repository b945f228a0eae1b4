import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { followPull } from "./docker-pull.ts";

const LIMIT_MS = 120_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** A pull with single progress events; `tell` waits until one was processed. */
function slowPull() {
  const stream = new PassThrough();
  let heard = Promise.withResolvers<number>();
  const pulled = followPull(stream, {
    credentials: null,
    inactivityMs: LIMIT_MS,
    signal: new AbortController().signal,
    onProgress: ({ percent }) => heard.resolve(percent),
  });
  const tell = (current: number): Promise<number> => {
    heard = Promise.withResolvers();
    stream.write(
      `${JSON.stringify({ id: "layer", status: "Downloading", progressDetail: { current, total: 100 } })}\n`,
    );
    return heard.promise;
  };
  return { pulled, tell, end: () => stream.end() };
}

test("a pull may take hours while it makes progress: only silence is a fault (apache/texera#8451)", async () => {
  const { pulled, tell, end } = slowPull();
  for (let percent = 1; percent <= 100; percent++) {
    expect(await tell(percent)).toBe(percent);
    vi.advanceTimersByTime(LIMIT_MS - 1);
  }
  end();
  await expect(pulled).resolves.toBeUndefined();
});

test("a slow pull that falls silent is given up after the same time as any other", async () => {
  const { pulled, tell } = slowPull();
  await tell(99);
  vi.advanceTimersByTime(LIMIT_MS);
  await expect(pulled).rejects.toMatchObject({ kind: "pull-failed", message: "the pull made no progress for 120 s" });
});
