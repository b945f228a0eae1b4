import { expect, test } from "vitest";
import { exitWords } from "./exit-words.ts";

test.each([
  [0, "exit code 0"],
  [1, "exit code 1"],
  [126, "command cannot be executed (exit code 126)"],
  [127, "command not found (exit code 127)"],
  [128, "exit code 128"],
  [134, "aborted (signal 6)"],
  [137, "killed (signal 9)"],
  [139, "crashed with a segmentation fault (signal 11)"],
  [143, "terminated (signal 15)"],
  // Not a well-known signal.
  [200, "exit code 200"],
  [255, "exit code 255"],
])("exit code %i is described as: %s", (code, words) => {
  expect(exitWords(code)).toBe(words);
});
