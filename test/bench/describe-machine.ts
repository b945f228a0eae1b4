import { arch, cpus, release, totalmem } from "node:os";

/** One line for the head of a report: figures mean little without it. */
export function describeMachine(): string {
  const [first] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  const date = new Date().toISOString().slice(0, 10);
  const model = first?.model.trim() ?? "unknown";
  return `${date}; ${cpus().length} cores (${model}), ${memory} GiB, Linux ${release()} ${arch()}, Node ${process.version}`;
}
