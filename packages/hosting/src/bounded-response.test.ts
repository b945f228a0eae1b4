import { expect, test } from "vitest";
import { boundedBody } from "./bounded-response.ts";

test("a response is read in full up to the limit", async () => {
  expect(Buffer.from(await boundedBody(new Response("x".repeat(1000)), 1000)).toString()).toBe("x".repeat(1000));
  expect(await boundedBody(new Response(null, { status: 204 }), 1000)).toHaveLength(0);
});

test("a longer response is not read beyond the limit, however much follows", async () => {
  let pulled = 0;
  let cancelled = false;
  const endless = new ReadableStream({
    pull: (controller) => {
      pulled++;
      controller.enqueue(new Uint8Array(100));
    },
    cancel: () => {
      cancelled = true;
    },
  });
  await expect(boundedBody(new Response(endless), 1000)).rejects.toThrow("longer than 1000 bytes");
  expect(pulled).toBeLessThan(20);
  expect(cancelled).toBe(true);
});
