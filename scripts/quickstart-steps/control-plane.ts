import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { CLI } from "./fairlead.ts";
import type { Installation } from "./installation.ts";
import { requireFreePort } from "./ports.ts";
import { lastLines, type Program, runningPid, runsAsWanted, start, stop } from "./programs.ts";
import { QuickstartError, type Step, waitFor } from "./progress.ts";

const START_SECONDS = 60;

export interface Ports {
  readonly platform: number;
  readonly inference: number;
}

/** The requested ports, else the current ones, else the defaults. */
export function choosePorts(at: Installation, asked: { platform: string; inference: string }): Ports {
  const inUse = portsInUse(at);
  return {
    platform: Number(asked.platform || inUse?.platform || 8080),
    inference: Number(asked.inference || inUse?.inference || 8081),
  };
}

/** The ports of the last start, from the config file, which is written before the start. */
function portsInUse(at: Installation): Ports | null {
  if (!existsSync(at.configFile)) return null;
  const text = readFileSync(at.configFile, "utf8");
  const portOf = (host: string): number => Number(new RegExp(`^  ${host}: .*port: (\\d+)`, "m").exec(text)?.[1]);
  return { platform: portOf("platform"), inference: portOf("inference") };
}

export const addressOf = (port: number): string => `http://127.0.0.1:${port}`;

/** Paths are quoted as JSON strings, which are valid YAML. */
function configText(at: Installation, ports: Ports): string {
  return `# Written by scripts/quickstart on every run. To change settings, copy it and run \`fairlead server --config COPY\`.
dataDir: ${JSON.stringify(at.dataDir)}
server:
  platform: { host: 127.0.0.1, port: ${ports.platform} }
  inference: { host: 127.0.0.1, port: ${ports.inference} }
  publicUrl: ${addressOf(ports.platform)}
  modelsUrl: ${addressOf(ports.inference)}
log:
  level: info
`;
}

/** Makes sure that this build's control plane is running on these ports and ready. */
export async function ensureControlPlane(
  at: Installation,
  ports: Ports,
  context: { step: Step; interrupt: AbortSignal },
): Promise<void> {
  if (ports.platform === ports.inference) throw new QuickstartError("The two hosts require different ports.");
  const settings = configText(at, ports);
  const server: Program = {
    name: "server",
    bin: CLI,
    args: ["server", "--config", at.configFile],
    settings,
  };
  if (runsAsWanted(at, server) && (await isReady(ports))) {
    context.step.note("already running");
    return;
  }
  // Check the ports before stopping anything.
  const ours = runningPid(at, server.name) === null ? [] : Object.values(portsInUse(at) ?? {});
  if (!ours.includes(ports.platform)) await requireFreePort(ports.platform, "--platform-port");
  if (!ours.includes(ports.inference)) await requireFreePort(ports.inference, "--inference-port");
  const restarted = await stop(at, server.name);
  if (!existsSync(at.configFile) || readFileSync(at.configFile, "utf8") !== settings)
    writeFileSync(at.configFile, settings, { mode: 0o600 });
  start(at, server);
  await untilReady(at, ports, context.interrupt);
  if (restarted) context.step.note("restarted");
}

async function untilReady(at: Installation, ports: Ports, interrupt: AbortSignal): Promise<void> {
  const ready = await waitFor({
    seconds: START_SECONDS,
    everyMs: 100,
    interrupt,
    ask: async () => {
      if (runningPid(at, "server") === null)
        throw new QuickstartError(`The control plane exited immediately. ${lastLines(at, "server", 12)}`);
      return (await isReady(ports)) || undefined;
    },
  });
  if (!ready)
    throw new QuickstartError(
      `The control plane was not ready after ${START_SECONDS} s. ${lastLines(at, "server", 12)}`,
    );
}

async function isReady({ platform, inference }: Ports): Promise<boolean> {
  const checks = [`${addressOf(platform)}/readyz`, `${addressOf(inference)}/healthz`];
  try {
    const answers = await Promise.all(checks.map((url) => fetch(url, { signal: AbortSignal.timeout(2000) })));
    return answers.every(({ ok }) => ok);
  } catch {
    return false;
  }
}
