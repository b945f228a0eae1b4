import type { Agent, AgentEvent } from "@fairlead/protocol/agents";
import { AGENT, agentEvent, NODE_IDS } from "./agent.ts";
import { type FakeTerminal, fakeTerminal } from "./fake-terminal.ts";
import { run } from "./run.ts";
import { type Answer, type SeenRequest, type StubHost, startStubHost } from "./stub-host.ts";

/** A stub platform host with one agent, whose state changes with the calls. */
export class AgentHost {
  agent: Agent = AGENT;
  /** Newest first. */
  events: AgentEvent[] = [agentEvent({ id: "evt_1", kind: "created", message: "made" })];
  #host: StubHost | null = null;

  /** Runs `fairlead agent …` against it. */
  async call(
    argv: readonly string[],
    answers: Record<string, Answer> = {},
    terminal: FakeTerminal = fakeTerminal(),
  ): ReturnType<typeof run> {
    this.close();
    this.#host = await startStubHost({
      "GET /v1/agents": (response) => void response.end(JSON.stringify({ agents: [this.agent], nextPageToken: "" })),
      "GET /v1/agents/agt_1": (response) => void response.end(JSON.stringify(this.agent)),
      "GET /v1/agents/agt_1/events": (response) =>
        void response.end(JSON.stringify({ events: this.events, nextPageToken: "" })),
      "GET /v1/nodes/by-slug/attic": { body: { id: NODE_IDS.attic } },
      "GET /v1/nodes/by-slug/cellar": { body: { id: NODE_IDS.cellar } },
      ...answers,
    });
    const env = { FAIRLEAD_BASE_URL: this.#host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
    return run(["agent", ...argv], { env, terminal });
  }

  /** Accepts a call and then changes the agent. */
  thereupon(change: Partial<Agent>, ...news: readonly AgentEvent[]): Answer {
    return (response) => {
      this.become(change, ...news);
      response.end(JSON.stringify(this.agent));
    };
  }

  /** Changes the agent on each read, in this order; afterwards it stays the same. */
  onLooks(...steps: readonly (() => void)[]): Answer {
    const left = [...steps];
    return (response) => {
      left.shift()?.();
      response.end(JSON.stringify(this.agent));
    };
  }

  become(change: Partial<Agent>, ...news: readonly AgentEvent[]): void {
    this.agent = { ...this.agent, ...change };
    this.events = [...[...news].reverse(), ...this.events];
  }

  get seen(): readonly SeenRequest[] {
    return this.#host?.seen ?? [];
  }

  /** Bodies of the calls with this method. */
  sent(method: string): readonly unknown[] {
    return this.seen.filter((request) => request.method === method).map(({ body }) => body);
  }

  close(): void {
    this.#host?.close();
    this.#host = null;
  }
}
