import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { z } from "zod";
import { docker } from "../../support/docker.ts";
import { runScript, type ScriptResult } from "../../support/run-script.ts";
import type { Box } from "./box.ts";

const VERSION = "1.0.0-field";
const UNIT = "fairlead-control-plane";
const ADMINISTRATOR = "admin@field.local";
const CONFIG = "--config /etc/fairlead/config.yaml";

/** Models of nodes cost something, so that nothing is answered for free; other machines reach the hosts. */
const SETTINGS = {
  FAIRLEAD_SERVER_PLATFORM_HOST: "0.0.0.0",
  FAIRLEAD_SERVER_INFERENCE_HOST: "0.0.0.0",
  FAIRLEAD_BILLING_MODE: "prepaid",
};

/** A control plane of its own build, on a machine of its own, installed as docs/install.md says. */
export class BoxedPlatform {
  readonly box: Box;
  readonly url: string;
  readonly modelsUrl: string;
  #token = "";

  private constructor(box: Box, address: string) {
    this.box = box;
    this.url = `http://${address}:8080`;
    this.modelsUrl = `http://${address}:8081`;
  }

  /** Builds it of this checkout, and unpacks it on a machine. */
  static async unpack(box: Box): Promise<BoxedPlatform> {
    const folder = mkdtempSync(join(tmpdir(), "fairlead-platform-"));
    try {
      const { code, errors } = await runScript("build-control-plane", [
        "--arch",
        "x64",
        "--version",
        VERSION,
        "--out",
        folder,
      ]);
      if (code !== 0) throw new Error(errors);
      const tar = readdirSync(join(folder, VERSION)).find((file) => file.endsWith(".tar.gz"));
      await docker("cp", join(folder, VERSION, `${tar}`), `${box.id}:/root/fairlead.tar.gz`);
    } finally {
      rmSync(folder, { recursive: true });
    }
    await box.run(
      "mkdir /root/fairlead && tar -xzf /root/fairlead.tar.gz -C /root/fairlead && rm /root/fairlead.tar.gz",
    );
    return new BoxedPlatform(box, await docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", box.id));
  }

  install(...options: readonly string[]): Promise<ScriptResult> {
    return this.box.try(`/root/fairlead/scripts/install/install-control-plane.sh ${options.join(" ")}`);
  }

  /** Opens it to other machines, and makes an administrator. @param settings on top, by their names in the environment. */
  async open(settings: Readonly<Record<string, string>>): Promise<void> {
    const lines = Object.entries({ ...SETTINGS, ...settings }).map(([name, value]) => `${name}='${value}'`);
    await this.box.run(`cat >/etc/fairlead/control-plane.env <<'END'\n${lines.join("\n")}\nEND`);
    await this.box.run(`systemctl restart ${UNIT}`);
    await this.box.run(`fairlead admin create-user --email ${ADMINISTRATOR} --name Admin --platform-admin ${CONFIG}`);
    this.#token = await this.box.run(`fairlead admin token --email ${ADMINISTRATOR} ${CONFIG}`);
  }

  /** A command of the administrator, on the platform's own machine. */
  fairlead(command: string): Promise<string> {
    return this.box.run(`FAIRLEAD_BASE_URL=${this.url} FAIRLEAD_TOKEN=${this.#token} fairlead ${command}`);
  }

  /** A command that works on the data folder, or on the server's socket. */
  locally(command: string): Promise<string> {
    return this.box.run(`fairlead ${command} ${CONFIG}`);
  }

  async call<T>(method: string, path: string, { schema, body }: { schema: z.ZodType<T>; body?: object }): Promise<T> {
    const headers = { authorization: `Bearer ${this.#token}`, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${this.url}${path}`, { method, headers, ...sent });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return schema.parse(await response.json());
  }

  mainPid(): Promise<string> {
    return this.box.run(`systemctl show ${UNIT} --property=MainPID --value`);
  }
}
