import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "../bench.ts";
import { processTree } from "../machine.ts";
import type { RunningTarget } from "../targets.ts";
import { findInstalled } from "./installed.ts";
import { freePort, untilAnswers } from "./start.ts";

const TEMPLATE = new URL("../conf/nginx.conf", import.meta.url);

export function missingNginx(): string | null {
  return findInstalled("nginx") === null ? "nginx is not installed (apt-get install nginx)" : null;
}

export async function startNginx(bench: Bench): Promise<Pick<RunningTarget, "port" | "parts" | "stop">> {
  const port = await freePort();
  const folder = mkdtempSync(join(bench.folder, "nginx-"));
  const values: Readonly<Record<string, string>> = {
    DIR: folder,
    PORT: String(port),
    UPSTREAM: String(bench.mockPort),
  };
  const config = readFileSync(TEMPLATE, "utf8").replaceAll(/@([A-Z]+)@/g, (all, name: string) => values[name] ?? all);
  const file = join(folder, "nginx.conf");
  writeFileSync(file, config);
  const args = ["-p", folder, "-e", join(folder, "start.log"), "-c", file];
  const nginx = bench.processes.launch({ name: "nginx", command: findInstalled("nginx") ?? "nginx", args, core: 1 });
  await untilAnswers({ port, key: "bench", model: "mock-model" }, nginx);
  return { port, parts: [{ name: "nginx", pids: processTree(nginx.pid) }], stop: () => nginx.stop() };
}
