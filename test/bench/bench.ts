import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Processes } from "./processes.ts";

/** What every target and run of one bench shares. */
export interface Bench {
  readonly processes: Processes;
  /** For logs, stores and configs; removed at the end. */
  readonly folder: string;
  readonly mockPort: number;
  readonly loadClient: string;
  readonly profileDir: string | undefined;
  close(): Promise<void>;
}

const SOURCES = fileURLToPath(new URL("src", import.meta.url));
const BINARIES = fileURLToPath(new URL("../../node_modules/.cache/bench", import.meta.url));

/** Compiles what changed and starts the mock upstream. */
export async function openBench(options: {
  readonly pinned: boolean;
  readonly profileDir: string | undefined;
}): Promise<Bench> {
  const [mock, loadClient] = [compile("mock"), compile("load")];
  const folder = mkdtempSync(join(tmpdir(), "fairlead-bench-"));
  const processes = new Processes(folder, options.pinned);
  const close = async (): Promise<void> => {
    await processes.stopAll();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const upstream = processes.launch({ name: "mock", command: mock, args: [], core: 0 });
    const mockPort = Number(await upstream.printed(/^(\d+)$/m));
    return { processes, folder, mockPort, loadClient, profileDir: options.profileDir, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @returns the program's path. @throws with the compiler's words. */
function compile(name: string): string {
  const binary = join(BINARIES, name);
  const sources = [`${name}.c`, "http.h", "measure.h"].map((file) => join(SOURCES, file));
  const changed = Math.max(...sources.map((source) => statSync(source).mtimeMs));
  if ((statSync(binary, { throwIfNoEntry: false })?.mtimeMs ?? 0) > changed) return binary;
  mkdirSync(BINARIES, { recursive: true });
  const args = ["-O2", "-Wall", "-Wextra", "-o", binary, join(SOURCES, `${name}.c`)];
  const { status, stderr, error } = spawnSync("cc", args, { encoding: "utf8" });
  if (error) throw new Error("The bench needs a C compiler: apt-get install gcc libc6-dev", { cause: error });
  if (status !== 0) throw new Error(`cc failed:\n${stderr}`);
  return binary;
}
