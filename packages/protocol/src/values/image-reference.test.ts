import { expect, test } from "vitest";
import { agentConfigSchema } from "../agents.ts";
import { engineConfigSchema } from "../engine-config.ts";
import { isImageReference } from "./image-reference.ts";

test.each([
  "alpine",
  "alpine:3.20",
  "example/engine_a.b-c__d:1.2-rc_3",
  "GHCR.io:443/example/deep/engine:V1",
  `engine:1@sha256:${"0a".repeat(32)}`,
  "ghcr.io/example/engine:2",
  "localhost:5000/x",
  "[::1]:5000/x",
  "169.254.169.254:80/x",
  `registry.example.com/team/engine@sha256:${"0".repeat(64)}`,
  `sha256:${"0".repeat(64)}`,
])("%s is a valid image reference", (text) => {
  expect(isImageReference(text)).toBe(true);
});

test.each([
  "",
  " alpine",
  "alpine x",
  "--privileged",
  "-v",
  "../x",
  "//images/engine",
  "./info",
  "example/engine/",
  "engine@",
  "engine:1:2",
  "Example/Engine/x:",
  "a//b",
  "a/../b",
  "http://evil.example/x",
  "user:pass@evil.example/x",
  "evil.example/x?y",
  "evil.example/x#y",
  "evil.example/x%2f",
  "alpine:",
  "alpine:-x",
  "alpine\n",
  "älpine",
  "a".repeat(513),
])("%j is not a valid image reference", (text) => {
  expect(isImageReference(text)).toBe(false);
});

test("a long string is checked quickly, whatever it contains", () => {
  for (const text of ["a".repeat(100_000), "a.".repeat(50_000), `${"a/".repeat(250)}!`, `${"a-".repeat(255)}!`]) {
    expect(isImageReference(text)).toBe(false);
  }
});

test("engine and agent configs reject invalid image references", () => {
  for (const image of ["--privileged", "http://169.254.169.254/latest", "../containers/json", "a".repeat(513)]) {
    expect(engineConfigSchema.safeParse({ image }).error?.issues[0]?.path).toEqual(["image"]);
    expect(agentConfigSchema.safeParse({ image }).error?.issues[0]?.path).toEqual(["image"]);
  }
});
