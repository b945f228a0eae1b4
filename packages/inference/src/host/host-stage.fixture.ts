import type { AddressInfo } from "node:net";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { pino } from "pino";
import type { CallEnd } from "../calls/inference-call.ts";
import type { Candidate } from "../calls/model-catalog.ts";
import type { InferenceCaller } from "../ports/inference-caller.ts";
import { PLACE } from "../relay/call-relay.fixture.ts";
import { asKey } from "../testing/callers.ts";
import { type ScriptedCall, ScriptedUpstream } from "../testing/scripted-upstream.ts";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest } from "../upstreams/upstream.ts";
import { createInferenceHost, type InferenceHost, type InferenceHostOptions } from "./inference-host.ts";

export const CHAT = { model: "any/model", messages: [{ role: "user", content: "Hello there" }] };
export const ANSWER = { id: "c", choices: [{ index: 0, message: { role: "assistant", content: "Hi." } }] };

class PlayedUpstream extends ScriptedUpstream {
  readonly #play: ((far: ScriptedCall) => void) | undefined;

  constructor(play?: (far: ScriptedCall) => void) {
    super();
    this.#play = play;
  }

  override dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const call = super.dispatch(request, handler);
    const far = this.calls.at(-1);
    if (far !== undefined) setImmediate(() => this.#play?.(far));
    return call;
  }
}

/** A real inference host, whose upstreams the test plays. */
export class HostStage {
  readonly clock = new TestClock();
  readonly ends: CallEnd[] = [];
  host: InferenceHost | undefined;
  caller: InferenceCaller = asKey("prj_1");
  candidates: readonly Candidate[] = [];

  async open(options: Partial<InferenceHostOptions> = {}): Promise<void> {
    const host = createInferenceHost({
      callers: { authenticate: () => Promise.resolve(this.caller) },
      models: {
        resolve: (_project, name) => Promise.resolve({ name, candidates: this.candidates }),
        defaultModel: () => Promise.resolve(null),
        list: () => Promise.resolve([]),
        entry: (_project, id) => Promise.resolve({ id, object: "model", created: 1, owned_by: "any" }),
      },
      ids: systemIds(() => 0),
      clock: this.clock,
      log: pino({ level: "silent" }),
      onEnded: (end) => void this.ends.push(end),
      random: () => 0,
      ...options,
    });
    await new Promise<void>((resolve) => host.server.listen(0, "127.0.0.1", resolve));
    this.host = host;
  }

  async close(): Promise<void> {
    await this.host?.drain(0);
  }

  get url(): string {
    const address = this.host?.server.address() as AddressInfo | undefined;
    return `http://127.0.0.1:${address?.port}`;
  }

  /** Another place that serves every model. @param play what it does with each of its calls; else the test does it. */
  place(name: string, play?: (far: ScriptedCall) => void, rest: Partial<Candidate> = {}): ScriptedUpstream {
    const upstream = new PlayedUpstream(play);
    const candidate: Candidate = {
      ...PLACE,
      key: name,
      upstreamId: `node:${name}`,
      kind: "node",
      model: "model",
      protocols: ["chat", "responses"],
      open: () => upstream,
      ...rest,
    };
    this.candidates = [...this.candidates, candidate];
    return upstream;
  }

  chat(
    body: object = CHAT,
    init: { readonly headers?: Record<string, string>; readonly signal?: AbortSignal } = {},
  ): Promise<Response> {
    const headers = { authorization: "Bearer flk_x", "content-type": "application/json", ...init.headers };
    return fetch(`${this.url}/v1/chat/completions`, { method: "POST", ...init, headers, body: JSON.stringify(body) });
  }
}
