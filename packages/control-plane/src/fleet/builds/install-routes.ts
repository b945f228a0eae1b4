import { readFile } from "node:fs/promises";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import type { DaemonBuildService } from "./daemon-build-service.ts";
import { renderInstallScript } from "./install-script.ts";

export interface InstallRouteDeps {
  readonly daemonBuilds: DaemonBuildService;
  readonly publicUrl: string;
  /** The bundled `install/install.sh`. */
  readonly installScript: string;
}

const getInstallScript = {
  summary: "The script that installs a node",
  description:
    "A POSIX shell script for a Linux machine with systemd and Docker: `curl -fsSL {base_url}/install.sh | FAIRLEAD_BOOTSTRAP_TOKEN=… sh`. " +
    "Public: it contains this host's address and no secrets.",
  operationId: "getInstallScript",
  tags: ["Daemon builds"],
  response: { 200: { description: "The response.", content: { "text/plain": { schema: z.string() } } } },
} satisfies FastifySchema;

export function registerInstallRoutes(app: PlatformApp, deps: InstallRouteDeps): void {
  const { daemonBuilds, publicUrl, installScript } = deps;
  app.get("/install.sh", { schema: getInstallScript }, async (_request, reply) => {
    const template = await readFile(installScript, "utf8");
    return reply
      .type("text/plain; charset=utf-8")
      .send(renderInstallScript(template, { publicUrl, build: await daemonBuilds.forNewNodes() }));
  });
}
