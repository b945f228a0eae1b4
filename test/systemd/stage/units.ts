import { readFileSync } from "node:fs";
import type { Box } from "./box.ts";

const INSTALL_PAGE = new URL("../../../docs/install.md", import.meta.url).pathname;

/** What systemd thinks of an installed unit. */
export interface Judgement {
  /** Mistakes, as `systemd-analyze verify` names them. */
  readonly mistakes: string;
  /** Of `systemd-analyze security`, from 0 to 10: less is better. */
  readonly exposure: number;
}

export async function judge(box: Box, unit: string): Promise<Judgement> {
  const mistakes = await box.run(`systemd-analyze verify /etc/systemd/system/${unit} 2>&1`);
  const told = await box.run(`systemd-analyze security --no-pager ${unit}`);
  const exposure = /Overall exposure level for \S+: ([\d.]+)/.exec(told)?.[1];
  if (exposure === undefined) throw new Error(told);
  return { mistakes, exposure: Number(exposure) };
}

/** The exposure that docs/install.md promises, for the systemd of Debian 12. */
export function promisedExposure(program: "control plane" | "daemon"): number {
  const page = readFileSync(INSTALL_PAGE, "utf8");
  const promised = new RegExp(`systemd-analyze security.*the ${program} (\\d+\\.\\d+)`).exec(page)?.[1];
  if (promised === undefined) throw new Error(`docs/install.md does not say how exposed the ${program} is`);
  return Number(promised);
}
