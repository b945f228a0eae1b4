import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { z } from "zod";

const quantilesSchema = z.object({ p50: z.number(), p99: z.number() });

/** What the load client prints. Latencies in microseconds. */
const loadResultSchema = z.object({
  seconds: z.number(),
  ok: z.number(),
  /** Answered with another status than 200. */
  refused: z.number(),
  /** Connection lost before the answer's end. */
  broken: z.number(),
  /** Streams that ended cleanly but were not whole. */
  cut: z.number(),
  /** Requests of a fixed clock for which no connection was free. */
  late: z.number(),
  chunks: z.number(),
  latency: quantilesSchema,
  /** Request sent to first content chunk. */
  first: quantilesSchema,
  /** The mock's write of a content chunk to its arrival. */
  hop: quantilesSchema,
  /** In the order in which they were named. */
  processes: z.array(z.object({ cpuSeconds: z.number(), startMb: z.number(), peakMb: z.number() })),
});
export type LoadResult = z.infer<typeof loadResultSchema>;

/** Runs the load client once. @param commandLine with its arguments. @param limitMs after which it is killed. */
export async function runLoad(commandLine: readonly string[], limitMs: number): Promise<LoadResult> {
  const [program = "", ...args] = commandLine;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], timeout: limitMs, killSignal: "SIGKILL" });
  const [out, errors, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve, reject) => child.once("close", resolve).once("error", reject)),
  ]);
  if (code !== 0) throw new Error(`the load client failed: ${errors.trim() || `no end within ${limitMs} ms`}`);
  return loadResultSchema.parse(JSON.parse(out));
}
