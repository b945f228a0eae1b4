import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const BENCH = new URL("../bench/chat.ts", import.meta.url).pathname;

test.skipIf(spawnSync("cc", ["--version"]).status !== 0)(
  "the chat benchmark measures time to first token and memory",
  async () => {
    const small = ["--messages", "4", "--turns", "3", "--streams", "5", "--rounds", "1", "--chunks", "3", "--no-pin"];
    const { stdout } = await promisify(execFile)(process.execPath, [BENCH, ...small]);
    for (const dialect of ["completions", "responses"]) {
      expect(stdout).toMatch(new RegExp(`^\\| 4 \\| ${dialect} \\|( -?[\\d.,]+ \\|){5}$`, "m"));
    }
    expect(stdout).toMatch(/^\| 1 \| 15 \|( [\d.,]+ \|){6}$/m);
  },
);
