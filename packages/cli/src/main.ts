import { readFileSync } from "node:fs";
import { z } from "zod";
import { processEnvironment } from "./config.ts";
import { loadControlPlane } from "./control-plane.ts";
import { runProgram } from "./program.ts";
import { processTerminal } from "./terminal.ts";

const packageSchema = z.object({ version: z.string() });

/** @param argv the arguments after the program's name. @returns the exit code. */
export async function main(argv: string[]): Promise<number> {
  const packageFile = new URL("../package.json", import.meta.url);
  const { version } = packageSchema.parse(JSON.parse(readFileSync(packageFile, "utf8")));
  return runProgram({ terminal: processTerminal(), env: processEnvironment(), loadControlPlane, version }, argv);
}
