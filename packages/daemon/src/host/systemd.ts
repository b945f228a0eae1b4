import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";

/**
 * Tells systemd that the daemon has started. Node cannot open datagram sockets of the Unix kind, so systemd's own tool does
 * it; `--no-block` because its barrier could hold up the start for seconds.
 */
export function notifySystemd(): void {
  const child = spawn("systemd-notify", ["--ready", "--no-block", `--pid=${process.pid}`], { stdio: "ignore" });
  // Without the tool the unit's start simply times out, and the journal shows why.
  child.on("error", () => undefined);
}

/** Whether systemd runs this machine (sd_booted(3)). */
export async function runsSystemd(): Promise<boolean> {
  try {
    return (await stat("/run/systemd/system")).isDirectory();
  } catch {
    return false;
  }
}
