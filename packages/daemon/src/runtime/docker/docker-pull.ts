import { createInterface } from "node:readline";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { z } from "zod";
import { type PullOptions, type PullProgress, RuntimeError } from "../container-runtime.ts";

const lineSchema = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});
type PullLine = z.infer<typeof lineSchema>;

/**
 * Follows Docker's pull stream to its end. Errors arrive inside a 200 response; only a clean end without an error is a success.
 * @param stream JSON lines. @throws RuntimeError `pull-failed`.
 */
export async function followPull(stream: NodeJS.ReadableStream, options: PullOptions): Promise<void> {
  const idle = inactivityTimer(options.inactivityMs);
  const layers = new Map<string, { current: number; total: number }>();
  const lines = createInterface({ input: stream });
  const failure = Promise.withResolvers<never>();
  // readline re-emits its input's error; an unhandled one would end the process.
  stream.on("error", failure.reject);
  lines.on("error", failure.reject);
  idle.expired.catch(failure.reject);
  try {
    await Promise.race([readLines(lines, { layers, options, onLine: idle.reset }), failure.promise]);
  } catch (error) {
    if (error instanceof RuntimeError) throw error;
    throw new RuntimeError("pull-failed", "the pull was interrupted", { cause: error });
  } finally {
    idle.stop();
    lines.close();
    destroy(stream);
  }
}

interface Reading {
  readonly layers: Map<string, { current: number; total: number }>;
  readonly options: PullOptions;
  readonly onLine: () => void;
}

async function readLines(lines: AsyncIterable<string>, { layers, options, onLine }: Reading): Promise<void> {
  for await (const text of lines) {
    onLine();
    const line = parseLine(text);
    if (line === null) continue;
    if (line.error !== undefined) throw new RuntimeError("pull-failed", line.error, { said: line.error });
    const { current, total } = line.progressDetail ?? {};
    if (line.id === undefined || line.status !== "Downloading" || current === undefined || !total) continue;
    layers.set(line.id, { current, total });
    options.onProgress(progressOf(layers));
  }
}

function progressOf(layers: ReadonlyMap<string, { current: number; total: number }>): PullProgress {
  let current = 0;
  let total = 0;
  for (const layer of layers.values()) {
    current += layer.current;
    total += layer.total;
  }
  return { percent: Math.floor((100 * current) / total), pendingBytes: total - current };
}

function parseLine(text: string): PullLine | null {
  try {
    const parsed = lineSchema.safeParse(parseJson(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

function inactivityTimer(milliseconds: number): { expired: Promise<never>; reset: () => void; stop: () => void } {
  const expired = Promise.withResolvers<never>();
  const expire = (): void => {
    expired.reject(
      new RuntimeError("pull-failed", `the pull made no progress for ${Math.round(milliseconds / 1000)} s`),
    );
  };
  let timer = setTimeout(expire, milliseconds);
  return {
    expired: expired.promise,
    reset: () => {
      clearTimeout(timer);
      timer = setTimeout(expire, milliseconds);
    },
    stop: () => clearTimeout(timer),
  };
}

function destroy(stream: NodeJS.ReadableStream): void {
  if ("destroy" in stream && typeof stream.destroy === "function") stream.destroy();
}
