import * as fc from "fast-check";
import type { Attack, Ground } from "./attack.ts";
import { bearer, call } from "./call.ts";
import { HOSTILE_PROVIDERS, NODE_MODEL, type Tenant } from "./facts.ts";
import { type Reply, replyArbitrary } from "./replies.ts";
import type { ReplyServer } from "./reply-server.ts";

/** What a project's own provider replies, or an engine behind a node's daemon. Somebody of the project calls them. */

const ROUTES = ["chat", "responses", "turn"] as const;
type Route = (typeof ROUTES)[number];

export interface CallMove {
  readonly reply: Reply;
  /** In which dialect it is called, or by a turn of a chat session. */
  readonly route: Route;
  readonly provider: (typeof HOSTILE_PROVIDERS)[number];
  readonly stream: boolean;
  /** How many at the same time. */
  readonly parallel: number;
}

const CALL_MS = 4000;
const PATHS: Readonly<Record<Route, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  turn: "/v1/chat/responses",
};

const move: fc.Arbitrary<CallMove> = fc.record({
  reply: replyArbitrary,
  route: fc.constantFrom(...ROUTES),
  provider: fc.constantFrom(...HOSTILE_PROVIDERS),
  stream: fc.boolean(),
  parallel: fc.integer({ min: 1, max: 4 }),
});

const one = (kind: Reply["kind"], amount: number, more: Partial<CallMove> = {}): CallMove => ({
  reply: { kind, amount, seed: 1, drip: false },
  route: "chat",
  provider: "evil-chat",
  stream: false,
  parallel: 1,
  ...more,
});

const heads = [
  one("spaces-then-control", 3500),
  one("inner-spaces", 60_000),
  one("trailer-spaces", 3500),
  one("status-spaces", 60_000),
];
const bodies = [
  one("nested-usage", 30_000_000, { route: "responses" }),
  one("nested-event", 4_000_000, { route: "responses", stream: true }),
  one("gzip-bomb", 60_000_000, { route: "responses" }),
  one("long-event", 60_000_000, { route: "responses", stream: true }),
];
const floods = [
  one("many-headers", 200_000),
  one("informational", 200_000),
  one("tiny-chunks", 200_000, { stream: true }),
  one("many-events", 100_000, { route: "responses", stream: true }),
  one("many-lines", 4_000_000, { route: "responses", stream: true }),
  one("many-events", 15_000_000, { route: "turn", provider: "evil-responses", parallel: 3 }),
];

export const upstream: Attack<CallMove> = {
  name: "upstream",
  move,
  known: { heads, bodies, floods },
  perform: (made, ground) => {
    const tenant = ground.facts.hostile.upstream;
    return perform(made, ground, { tenant, server: ground.upstream, model: `${made.provider}/m` });
  },
};

export const engine: Attack<CallMove> = {
  name: "engine",
  move,
  known: { heads, bodies: bodies.slice(0, 2), floods },
  perform: (made, ground) => {
    const tenant = ground.facts.hostile.engine;
    return perform(made, ground, { tenant, server: ground.engine, model: `${tenant.node.identifier}/${NODE_MODEL}` });
  },
};

interface Through {
  readonly tenant: Tenant;
  readonly server: ReplyServer;
  readonly model: string;
}

async function perform({ reply, route, stream, parallel }: CallMove, ground: Ground, through: Through): Promise<void> {
  const { tenant, server, model } = through;
  const { platformUrl, modelsUrl } = ground.facts;
  const content = server.prepare(reply);
  const messages = [{ role: "user", content }];
  const body = JSON.stringify(route === "responses" ? { model, stream, input: content } : { model, stream, messages });
  const headers =
    route === "turn" ? { ...bearer(tenant.token), "service-project-id": tenant.projectId } : bearer(tenant.key);
  const url = route === "turn" ? platformUrl : modelsUrl;
  const calls = Array.from({ length: parallel }, () => {
    ground.sent += 1;
    return call({ url, path: PATHS[route], method: "POST", headers, body, deadlineMs: CALL_MS });
  });
  await Promise.all(calls);
}
