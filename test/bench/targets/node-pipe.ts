import { fileURLToPath } from "node:url";
import type { Bench } from "../bench.ts";
import type { RunningTarget } from "../targets.ts";

const PROGRAM = fileURLToPath(new URL("node-pipe-program.ts", import.meta.url));

export async function startNodePipe(bench: Bench): Promise<Pick<RunningTarget, "port" | "parts" | "stop">> {
  const args = [PROGRAM, String(bench.mockPort)];
  const proxy = bench.processes.launch({ name: "node-pipe", command: process.execPath, args, core: 1 });
  const port = Number(await proxy.printed(/^(\d+)$/m));
  return { port, parts: [{ name: "node-pipe", pids: [proxy.pid] }], stop: () => proxy.stop() };
}
