import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Block, missingLine } from "./blocks.ts";

/** `compare.ts FOLDER LOG`: prints for each block whether it ran with the expected output; exits with 1 if one did not. */

const SHOWN_LINES = 40;

const [, , folder = "", log = ""] = process.argv;
const blocks = JSON.parse(readFileSync(join(folder, "plan.json"), "utf8")) as readonly Block[];

function problemOf({ expected }: Block, file: string): string | null {
  if (!existsSync(`${file}.out`)) return "not reached because an earlier block failed";
  const printed = readFileSync(`${file}.out`, "utf8");
  const shown = printed.trimEnd().split("\n").slice(-SHOWN_LINES).join("\n      ");
  if (!existsSync(`${file}.done`)) return `failed. Output:\n      ${shown}`;
  const missing = missingLine(expected, printed);
  return missing === null ? null : `missing expected line: ${missing}\n    Output:\n      ${shown}`;
}

let failed = 0;
let tried = 0;
blocks.forEach((block, index) => {
  if (block.notTried !== null) return void process.stdout.write(`  -   ${block.at} not tried: ${block.notTried}\n`);
  tried += 1;
  const problem = problemOf(block, join(folder, String(index).padStart(3, "0")));
  if (problem !== null) failed += 1;
  process.stdout.write(problem === null ? `  ok  ${block.at}\n` : `  !   ${block.at} ${problem}\n`);
});
process.stdout.write(`${tried - failed} blocks passed, ${failed} failed, ${blocks.length - tried} not tried\n`);
if (failed > 0 || tried === 0) {
  const words = readFileSync(log, "utf8").trim();
  if (words !== "") process.stdout.write(`Machine log:\n${words}\n`);
  process.exit(1);
}
