import { expect, test } from "vitest";
import { collectPassingBuffers } from "./garbage-collection.ts";

const MB = 1024 * 1024;

test("Buffers that passed through are freed soon", () => {
  const passed = collectPassingBuffers();
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  for (let piece = 0; piece < 20_000; piece++) {
    const buffer = Buffer.alloc(64 * 1024);
    passed(buffer.length);
    if (piece % 100 === 0) most = Math.max(most, process.memoryUsage().arrayBuffers);
  }
  expect((most - before) / MB).toBeLessThan(40);
});
