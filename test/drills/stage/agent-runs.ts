import { expect } from "vitest";
import { z } from "zod";
import type { AgentCaller } from "../../support/agent-calls.ts";
import type { Machine } from "../../support/machine.ts";
import type { DockerEvent } from "./docker-events.ts";

const versionSchema = z.object({ version: z.string() });

/** One run of one container. */
export class Run {
  readonly container: string;
  readonly #machine: Machine;
  readonly #startedAt: string;

  private constructor(machine: Machine, container: string, startedAt: string) {
    this.#machine = machine;
    this.container = container;
    this.#startedAt = startedAt;
  }

  /** @throws where not exactly one runs. */
  static async ofAgent(machine: Machine, agent: AgentCaller): Promise<Run> {
    const theirs = await agent.containers(machine);
    return Run.#one(
      machine,
      (await machine.running()).filter((container) => theirs.includes(container)),
    );
  }

  /** @throws where not exactly one runs. */
  static async ofEngine(machine: Machine, agent: AgentCaller): Promise<Run> {
    const theirs = await agent.containers(machine);
    return Run.#one(
      machine,
      (await machine.running()).filter((container) => !theirs.includes(container)),
    );
  }

  static async #one(machine: Machine, [container, ...others]: readonly string[]): Promise<Run> {
    if (container === undefined || others.length > 0) throw new Error(`${others.length + 1} run, or none`);
    return new Run(machine, container, await machine.startedAt(container));
  }

  /** It is the same run as when this was looked at. */
  async expectStill(): Promise<void> {
    expect(await this.#machine.running()).toContain(this.container);
    expect(await this.#machine.startedAt(this.container)).toBe(this.#startedAt);
  }
}

/** @returns the version that an agent answers with, through the relay. */
export async function answerOf(agent: AgentCaller): Promise<string> {
  const { gatewayUrl, authToken } = await agent.connect();
  const response = await fetch(`${gatewayUrl}/version`, { headers: { authorization: `Bearer ${authToken}` } });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return versionSchema.parse(await response.json()).version;
}

/** Whether an event says so of one of the agent's containers. */
export function agentChange({ id }: AgentCaller, action: string): (event: DockerEvent) => boolean {
  return ({ Type, Action, Actor }) =>
    Type === "container" && Action === action && Actor.Attributes["dev.fairlead.workload"] === id;
}

/** @param running those that ran when the events began. @returns how many of the agent's containers ran at one time, at most. */
export function mostAtOnce(events: readonly DockerEvent[], agent: AgentCaller, running: readonly string[]): number {
  const up = new Set(running);
  let most = up.size;
  for (const event of events) {
    if (agentChange(agent, "start")(event)) up.add(event.Actor.ID);
    if (agentChange(agent, "die")(event)) up.delete(event.Actor.ID);
    most = Math.max(most, up.size);
  }
  return most;
}
