import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../bench.ts";
import type { RunningTarget } from "../targets.ts";
import { findInstalled } from "./installed.ts";
import { freePort, untilAnswers } from "./start.ts";

const TEMPLATE = new URL("../conf/haproxy.cfg", import.meta.url);

export function missingHaproxy(): string | null {
  return findInstalled("haproxy") === null ? "HAProxy is not installed (apt-get install haproxy)" : null;
}

export async function startHaproxy(bench: Bench): Promise<Pick<RunningTarget, "port" | "parts" | "stop">> {
  const port = await freePort();
  const file = join(mkdtempSync(join(bench.folder, "haproxy-")), "haproxy.cfg");
  const template = readFileSync(TEMPLATE, "utf8");
  writeFileSync(file, template.replace("@PORT@", String(port)).replace("@UPSTREAM@", String(bench.mockPort)));
  const command = findInstalled("haproxy") ?? "haproxy";
  const haproxy = bench.processes.launch({ name: "haproxy", command, args: ["-db", "-f", file], core: 1 });
  await untilAnswers({ port, key: "bench", model: "mock-model" }, haproxy);
  return { port, parts: [{ name: "haproxy", pids: [haproxy.pid] }], stop: () => haproxy.stop() };
}
