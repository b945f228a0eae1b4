import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readPages } from "./blocks.ts";

/** `plan.ts FOLDER PAGE…|--all`: writes the blocks to run and the plan to FOLDER. */

const [, , folder = "", ...pages] = process.argv;
const blocks = readPages(new URL("../..", import.meta.url).pathname, pages);
writeFileSync(join(folder, "plan.json"), JSON.stringify(blocks));
blocks.forEach(({ script, notTried }, index) => {
  if (notTried === null) writeFileSync(join(folder, `${String(index).padStart(3, "0")}.sh`), script);
});
