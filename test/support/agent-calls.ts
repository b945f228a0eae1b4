import { type WorkloadConnect, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { z } from "zod";
import type { Installation } from "./installation.ts";
import type { Machine } from "./machine.ts";
import { waitFor } from "./wait-for.ts";

const RUNNING_MS = 90_000;

/** Exactly the interface's fields. */
const agentSchema = z.strictObject({
  id: z.string(),
  projectId: z.string(),
  name: z.string(),
  lifecycleState: z.string(),
  guest: z.string(),
  runtimeProvider: z.string(),
  connectorSlugs: z.array(z.string()),
  runtime: z.looseObject({ message: z.string() }),
  createdAt: z.string(),
  updatedAt: z.string(),
});
type Agent = z.infer<typeof agentSchema>;

export interface AgentAnswer {
  readonly status: number;
  readonly text: string;
}

/** One agent, as its administrator calls it. */
export class AgentCaller {
  readonly id: string;
  readonly #installation: Installation;

  private constructor(installation: Installation, id: string) {
    this.#installation = installation;
    this.id = id;
  }

  static async create(installation: Installation, machine: Machine, body: object): Promise<AgentCaller> {
    const { projectId } = installation;
    const agent = { projectId, name: "Agent", runtimeProvider: `node:${machine.nodeId}`, ...body };
    const created = await installation.api.create("/v1/agents", agent, z.object({ agent: agentSchema }));
    return new AgentCaller(installation, created.agent.id);
  }

  async call(method: string, path = "", body?: object): Promise<AgentAnswer> {
    const response = await this.#installation.call(method, `/v1/agents/${this.id}${path}`, body);
    return { status: response.status, text: await response.text() };
  }

  /** @throws with the answer, where it is no good one. */
  async want(method: string, path = "", body?: object): Promise<unknown> {
    const { status, text } = await this.call(method, path, body);
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text}`);
    return JSON.parse(text);
  }

  async get(): Promise<Agent> {
    return agentSchema.parse(await this.want("GET"));
  }

  async connect(): Promise<WorkloadConnect> {
    return workloadConnectSchema.parse(await this.want("GET", "/connect"));
  }

  async until(lifecycleState: string, timeoutMs = RUNNING_MS): Promise<Agent> {
    let seen = "";
    return waitFor(`the agent to be ${lifecycleState}`, timeoutMs, async () => {
      const agent = await this.get();
      seen = `${agent.lifecycleState}: ${agent.runtime.message}`;
      return agent.lifecycleState === lifecycleState && agent;
    }).catch(async (error: unknown) => {
      throw new Error(`${seen}\n${(await this.call("GET", "/logs?tail=30")).text}`, { cause: error });
    });
  }

  /** Full ids of its containers, in every state. */
  async containers(machine: Machine): Promise<string[]> {
    const ids = await machine.docker("ps", "-aq", "--no-trunc", "--filter", `label=dev.fairlead.workload=${this.id}`);
    return ids.split("\n").filter(Boolean);
  }
}
