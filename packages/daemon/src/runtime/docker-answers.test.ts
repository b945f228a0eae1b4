import { expect, test } from "vitest";
import { isReference } from "./docker-answers.ts";

test.each([
  "engine",
  "engine:1",
  "example/engine_a.b-c__d:1.2-rc_3",
  "localhost:5000/engine",
  "GHCR.io:443/example/deep/engine:V1",
  "[::1]:5000/engine:1",
  `engine:1@sha256:${"0a".repeat(32)}`,
  `ghcr.io/example/engine@sha256:${"0a".repeat(32)}`,
  `sha256:${"0a".repeat(32)}`,
])("%s can be an image", (text) => {
  expect(isReference(text)).toBe(true);
});

test.each([
  "",
  "https://ghcr.io/example/engine",
  "//images/engine",
  "../containers/engine",
  "../info",
  "./info",
  "example/../engine",
  "example/engine/",
  "engine@",
  "engine:1:2",
  "Example/Engine/x:",
  "engine?force=1",
  "engine#1",
  "engine%2f..",
  `${"a-".repeat(20_000)}!`,
])("%s can be none", (text) => {
  expect(isReference(text)).toBe(false);
});
