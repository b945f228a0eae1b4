import { execFile } from "node:child_process";
import type { Gpu } from "@fairlead/protocol/daemon-link";
import { cutText } from "@fairlead/protocol/values/text";

/** Result of `nvidia-smi`. `broken`: installed, but the driver does not respond. */
export type GpuReading =
  | { readonly state: "present"; readonly gpus: readonly Gpu[] }
  | { readonly state: "absent" }
  | { readonly state: "broken"; readonly reason: string };

/** The control plane's limit for an ID or name. */
const MAX_TEXT = 128;
const QUERY = ["--query-gpu=uuid,name,memory.total", "--format=csv,noheader,nounits"];
/** A failing driver can hang forever. */
const TIMEOUT_MS = 10_000;

/** @param command found on the PATH. */
export function readGpus(command = "nvidia-smi"): Promise<GpuReading> {
  return new Promise((resolve) => {
    execFile(command, QUERY, { timeout: TIMEOUT_MS, killSignal: "SIGKILL" }, (error, stdout, stderr) => {
      if (error === null) resolve({ state: "present", gpus: parseGpus(stdout) });
      else if (error.code === "ENOENT") resolve({ state: "absent" });
      else if (error.killed) resolve({ state: "broken", reason: `no response within ${TIMEOUT_MS / 1000} s` });
      else resolve({ state: "broken", reason: firstLine(stdout) || firstLine(stderr) || error.message });
    });
  });
}

/** Lines like `GPU-8f6c…, NVIDIA L4, 23034`; names may contain commas. */
export function parseGpus(text: string): Gpu[] {
  return text.split("\n").flatMap((line) => {
    const parts = line.split(",").map((part) => part.trim());
    const [id = "", ...rest] = parts;
    const memory = Number(rest.pop());
    if (id === "" || rest.length === 0) return [];
    const name = cutText(rest.join(", "), MAX_TEXT);
    return [{ id: cutText(id, MAX_TEXT), name, memoryMb: Math.max(0, Math.floor(memory) || 0) }];
  });
}

function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0]?.trim() ?? "";
}
