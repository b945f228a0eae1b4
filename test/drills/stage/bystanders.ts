import type { DockerHost } from "../../support/docker-host.ts";
import { importEngine } from "./images.ts";

/** Labels that come near to ours, or are those of somebody else's installation. */
const LABELS = [
  ["dev.fairlead.installation=somebody-elses", "dev.fairlead.node=nod_somebody-elses", "dev.fairlead.workload=engine"],
  ["dev.fairlead.workload=engine"],
  ["com.example.app=shop"],
];

/** Other people's things on the same Docker engine: whatever a drill breaks, they stay as they are. */
export class Bystanders {
  readonly #host: DockerHost;
  #picture = "";

  constructor(host: DockerHost) {
    this.#host = host;
  }

  async create(): Promise<void> {
    const image = importEngine(this.#host, { version: "bystander", fault: "none" });
    for (const [index, labels] of LABELS.entries()) {
      const flags = labels.flatMap((label) => ["--label", label]);
      const name = `bystander-${index}`;
      // One of them does not run: what is stopped is not rubbish either.
      const verb = index === 2 ? ["create"] : ["run", "-d"];
      await this.#host.docker(...verb, "--name", name, ...flags, "--volume", `${name}:/data`, image);
    }
    await this.#host.docker("network", "create", "bystander");
    this.#picture = await this.#look();
  }

  /** Something else than our daemons ended them (dockerd did): they are as they are from now on. */
  async acceptAsTheyAre(): Promise<void> {
    this.#picture = await this.#look();
  }

  /** @returns what is not as it was, or null. */
  async difference(): Promise<string | null> {
    const now = await this.#look();
    return now === this.#picture ? null : `other people's things were touched:\n${this.#picture}\nnow:\n${now}`;
  }

  async #look(): Promise<string> {
    const names = LABELS.map((_, index) => `bystander-${index}`);
    const format = "{{.Name}} {{.Id}} {{.State.Status}} {{.State.StartedAt}} {{.RestartCount}} {{.Image}}";
    const containers = await this.#host.docker("inspect", "--format", format, ...names);
    const volumes = await this.#host.docker("volume", "inspect", "--format", "{{.Name}} {{.CreatedAt}}", ...names);
    const network = await this.#host.docker("network", "inspect", "--format", "{{.Id}}", "bystander");
    const image = await this.#host.docker("image", "inspect", "--format", "{{.Id}}", "fairlead-drill/bystander-none:1");
    return [containers, volumes, network, image].join("\n");
  }
}
