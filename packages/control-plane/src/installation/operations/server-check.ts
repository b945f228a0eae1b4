import { execFile } from "node:child_process";
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { z } from "zod";
import type { Config } from "../config/config.ts";
import { storeLocation } from "../db/store-location.ts";
import { type DoctorFinding, fail, ok, warn } from "./finding.ts";

/** Whether the server is running; if not, its last log line and the command that starts it. */

const UNIT = "fairlead-control-plane";
const UNIT_FILE = `/etc/systemd/system/${UNIT}.service`;
const LOG_TAIL_BYTES = 16_384;
const MAX_LINE = 400;
const JOURNAL_MS = 5000;

export interface ServerSurroundings {
  /** From the command line; null: settings come only from the environment. */
  readonly configFile: string | null;
  /** The systemd unit's file. */
  readonly unitFile?: string;
}

export async function checkServer(
  config: Config,
  runs: boolean,
  { configFile, unitFile = UNIT_FILE }: ServerSurroundings,
): Promise<DoctorFinding> {
  if (runs) return ok("server", "runs");
  const command = startCommand(config, configFile, unitFile);
  const location = storeLocation(config);
  if ("file" in location && !existsSync(location.file))
    return warn("server", `has never run here; start it with: ${command}`);
  const last = lastLogLine(join(config.dataDir, "server.log")) ?? (await lastOfJournal(unitFile));
  const said = last === null ? "no log found" : `last line of its log: ${last}`;
  return fail("server", `not running; ${said}\nStart it with: ${command}`);
}

function startCommand({ dataDir }: Config, configFile: string | null, unitFile: string): string {
  if (existsSync(unitFile)) return `systemctl start ${UNIT}`;
  if (existsSync(join(dataDir, "quickstart.state"))) return `./scripts/quickstart --data-dir ${dataDir}`;
  return `fairlead server${configFile === null ? "" : ` --config ${configFile}`}`;
}

/** From the log file of the quickstart. @returns null if there is none */
function lastLogLine(file: string): string | null {
  if (!existsSync(file)) return null;
  const descriptor = openSync(file, "r");
  try {
    const { size } = fstatSync(descriptor);
    const bytes = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES));
    readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
    return readable(bytes.toString("utf8").trimEnd().split("\n").at(-1) ?? "");
  } finally {
    closeSync(descriptor);
  }
}

async function lastOfJournal(unitFile: string): Promise<string | null> {
  if (!existsSync(unitFile)) return null;
  try {
    const args = ["--unit", UNIT, "--lines", "1", "--output", "cat", "--no-pager", "--quiet"];
    const { stdout } = await promisify(execFile)("journalctl", args, { timeout: JOURNAL_MS });
    return readable(stdout.trim());
  } catch {
    // Without permission to read the journal.
    return null;
  }
}

const logLineSchema = z.object({
  msg: z.string(),
  time: z.union([z.string(), z.number()]).optional(),
  err: z.object({ message: z.string() }).optional(),
});

/** The message of a JSON log line; other lines unchanged. */
function readable(line: string): string | null {
  if (line === "") return null;
  const parsed = logLineSchema.safeParse(parsedOf(line));
  if (!parsed.success) return line.slice(0, MAX_LINE);
  const { msg, time, err } = parsed.data;
  const at = time === undefined ? "" : `${typeof time === "number" ? new Date(time).toISOString() : time} `;
  return `${at}${msg}${err === undefined ? "" : `: ${err.message}`}`.slice(0, MAX_LINE);
}

function parsedOf(line: string): unknown {
  try {
    return parseJson(line);
  } catch {
    return null;
  }
}
