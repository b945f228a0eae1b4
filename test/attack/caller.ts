import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { LINK_PATH, TUNNEL_PATH, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import * as fc from "fast-check";
import { z } from "zod";
import { seededRandom } from "../support/money-calls.ts";
import { ADDRESSES, type Attack, type Ground } from "./attack.ts";
import { bearer, type Call, call, type Outcome } from "./call.ts";
import { HONEST_MODEL, PRICED_MODEL, type Tenant } from "./facts.ts";
import { openForm } from "./page-form.ts";
import { rawExchange } from "./raw-request.ts";
import { mutate } from "./replies.ts";

/** Callers of both hosts: anonymous ones, and one person with projects and keys. */

const KINDS = [
  "idle-upload",
  "slow-head",
  "header-flood",
  "long-header",
  "two-hosts",
  "nested",
  "compressed",
  "mutated",
  "pipelined",
  "anonymous-upgrade",
  "foreign-upgrade",
  "forged-token",
  "sign-in",
  "device-code",
  "budget",
  "odd-numbers",
  "metrics",
] as const;

/** Where JSON is read: by anonymous callers first. */
const JSON_PATHS = [
  "/v1/nodes/nod_x/enroll",
  "/v1/nodes/nod_x/token",
  "/v1/oauth/token",
  "/v1/oauth/device/code",
  "/sign-in",
  "/v1/projects",
  "/v1/nodes",
  "/v1/chat/responses",
  "/v1/chat/completions",
  "/v1/responses",
] as const;

export interface CallerMove {
  readonly kind: (typeof KINDS)[number];
  /** Connections or requests at the same time. */
  readonly parallel: number;
  /** Bytes, brackets or spaces. */
  readonly amount: number;
  readonly path: (typeof JSON_PATHS)[number];
  readonly host: "platform" | "inference";
  readonly anonymous: boolean;
  readonly seed: number;
  readonly address: (typeof ADDRESSES)[number];
}

const move: fc.Arbitrary<CallerMove> = fc.record({
  kind: fc.constantFrom(...KINDS),
  parallel: fc.oneof(fc.constantFrom(1, 8, 30), fc.integer({ min: 1, max: 100 })),
  amount: fc.oneof(fc.constantFrom(1, 5000, 60_000, 800_000, 1_000_000, 33_000_000), fc.nat(1_000_000)),
  path: fc.constantFrom(...JSON_PATHS),
  host: fc.constantFrom("platform", "inference"),
  anonymous: fc.boolean(),
  seed: fc.nat(2 ** 31),
  address: fc.constantFrom(...ADDRESSES),
});

const one = (kind: CallerMove["kind"], more: Partial<CallerMove>): CallerMove => ({
  kind,
  parallel: 1,
  amount: 1000,
  path: "/v1/chat/completions",
  host: "inference",
  anonymous: false,
  seed: 1,
  address: ADDRESSES[1],
  ...more,
});

const ENROLL = { path: "/v1/nodes/nod_x/enroll", host: "platform", anonymous: true } as const;
/** `inference.maxBodyBytes`: eight of them are all that may be in memory (`inference.maxBufferedBytes`). */
const LARGEST_BODY = 33_554_432;

export const caller: Attack<CallerMove> = {
  name: "caller",
  move,
  known: {
    "idle uploads": [one("idle-upload", { parallel: 8, amount: LARGEST_BODY })],
    "upgrades of strangers": [
      one("anonymous-upgrade", { parallel: 100, amount: 10_000, host: "platform", anonymous: true }),
      one("anonymous-upgrade", { parallel: 100, amount: 10_000, host: "platform", address: ADDRESSES[0] }),
    ],
    "a budget": [one("budget", { parallel: 30, amount: 800_000 }), one("odd-numbers", { parallel: 8 })],
    "nested brackets": [
      one("nested", { ...ENROLL, seed: 0, amount: 1_000_000, parallel: 30 }),
      one("nested", { ...ENROLL, seed: 1, amount: 1_000_000, parallel: 10 }),
      one("nested", { seed: 10, amount: 30_000_000, path: "/v1/responses" }),
    ],
    "two hosts": [one("two-hosts", { host: "platform" }), one("two-hosts", {})],
    "passwords, headers and requests": [
      one("sign-in", { parallel: 60, host: "platform" }),
      one("compressed", { amount: 33_000_000 }),
      one("header-flood", { amount: 60_000 }),
      one("pipelined", { amount: 5000, host: "platform" }),
    ],
  },
  perform,
};

const HOLD_MS = 3000;
const CALL_MS = 8000;
const LEDGER_MS = 500;
const BUDGET_NANO_DOLLARS = 100_000_000;
const MOST_PIPELINED = 5000;
const MOST_HEADERS = 200_000;
const MOST_UPGRADES = 10_000;

interface Place {
  readonly url: string;
  readonly path: string;
  readonly tenant: Tenant;
  /** Lines of the head, without the last empty one. */
  readonly head: (more: string) => string;
}

async function perform(made: CallerMove, ground: Ground): Promise<void> {
  const work = WORK[made.kind];
  await work(made, ground);
}

type Work = (made: CallerMove, ground: Ground) => Promise<unknown>;

const WORK: Readonly<Record<CallerMove["kind"], Work>> = {
  "idle-upload": (made, ground) =>
    raw(made, ground, ({ head }) => [head(`content-length: ${Math.max(2, made.amount)}\r\n\r\n`), "{"]),
  "slow-head": (made, ground) => raw(made, ground, ({ head }) => [head("x: ")]),
  "header-flood": (made, ground) =>
    raw(made, ground, ({ head }) => [head("a: b\r\n".repeat(Math.min(made.amount, MOST_HEADERS)))]),
  "long-header": (made, ground) =>
    raw(made, ground, ({ head }) => [head(`a: ${" x".repeat(Math.min(made.amount, MOST_HEADERS))}\r\n\r\n`)]),
  "two-hosts": twoHosts,
  nested: (made, ground) => post(made, ground, { body: brackets(made) }),
  compressed: (made, ground) => {
    const body = gzipSync(`{"model":"${HONEST_MODEL}","input":"${"a".repeat(made.amount)}"}`);
    return post(made, ground, { body, more: { "content-encoding": "gzip" } });
  },
  mutated: (made, ground) =>
    raw(made, ground, ({ head }) => [mutate(head("content-length: 2\r\n\r\n{}"), seededRandom(made.seed))]),
  pipelined: (made, ground) =>
    raw({ ...made, parallel: 1 }, ground, ({ url }) => {
      const requests = Math.min(made.amount, MOST_PIPELINED);
      ground.sent += requests;
      return [`GET /healthz HTTP/1.1\r\nhost: ${new URL(url).host}\r\n\r\n`.repeat(requests)];
    }),
  "anonymous-upgrade": upgrades,
  "foreign-upgrade": upgrades,
  "forged-token": upgrades,
  "sign-in": signIns,
  "device-code": (made, ground) =>
    post({ ...made, host: "platform", path: "/v1/oauth/device/code" }, ground, {
      body: "client_id=fairlead-cli",
      more: { "content-type": "application/x-www-form-urlencoded" },
    }),
  budget,
  "odd-numbers": oddNumbers,
  metrics: (made, ground) => raw(made, ground, () => ["GET /metrics HTTP/1.1\r\nhost: attacker.example\r\n\r\n"]),
};

function placeOf(made: CallerMove, ground: Ground, n: number): Place {
  const { platformUrl, modelsUrl, hostile } = ground.facts;
  const url = made.host === "platform" ? platformUrl : modelsUrl;
  const tenant = hostile.callers[n % hostile.callers.length] ?? hostile.upstream;
  const secret = made.host === "platform" ? tenant.token : tenant.key;
  const authorization = made.anonymous ? "" : `authorization: Bearer ${secret}\r\n`;
  const first = `POST ${made.path} HTTP/1.1\r\nhost: ${new URL(url).host}\r\n`;
  const head = (more: string): string => `${first}content-type: application/json\r\n${authorization}${more}`;
  return { url, path: made.path, tenant, head };
}

/** Connections that stay open for a while. @returns what came back on each. */
async function raw(
  made: CallerMove,
  ground: Ground,
  bytesOf: (place: Place) => readonly (string | Buffer)[],
): Promise<string[]> {
  const exchanges = Array.from({ length: made.parallel }, (_, n) => {
    ground.sent += 1;
    const place = placeOf(made, ground, n);
    const bytes = bytesOf(place);
    return rawExchange({ url: place.url, localAddress: made.address, bytes, open: ground.open, waitMs: HOLD_MS });
  });
  return Promise.all(exchanges);
}

/** RFC 9112 §3.2: which of the two is meant, whoever stands in front may read otherwise. */
async function twoHosts(made: CallerMove, ground: Ground): Promise<void> {
  const responses = await raw({ ...made, parallel: 1 }, ground, ({ url }) => [
    `GET /readyz HTTP/1.1\r\nhost: ${new URL(url).host}\r\nhost: attacker.example\r\n\r\n`,
  ]);
  for (const text of responses) {
    if (text !== "" && !text.startsWith("HTTP/1.1 400")) ground.findings.push(`two Host lines: ${text.slice(0, 20)}`);
  }
}

/** Bare or in a member, with and without their ends. */
function brackets({ amount, seed }: CallerMove): string {
  const [opening, closing] = NESTINGS[seed % NESTINGS.length] ?? ["[", "]"];
  const depth = Math.floor(amount / (opening.length + closing.length));
  const value = `${opening.repeat(depth)}${seed % 2 === 0 ? "" : "1"}${closing.repeat(depth)}`;
  return seed % 4 < 2 ? value : `{"model":"${HONEST_MODEL}","input":${value}`;
}

const NESTINGS = [
  ["[", ""],
  ["[", "]"],
  ['{"a":', "}"],
  ["[{},", ""],
  ['{"a":[', "]}"],
] as const;

interface Posted {
  readonly body: string | Buffer;
  readonly more?: Readonly<Record<string, string>>;
}

async function post(made: CallerMove, ground: Ground, { body, more = {} }: Posted): Promise<void> {
  // So that what is sent in all has a bound.
  const parallel = Math.max(1, Math.min(made.parallel, Math.floor(40_000_000 / body.length)));
  const calls = Array.from({ length: parallel }, (_, n) => {
    ground.sent += 1;
    const { url, path, tenant } = placeOf(made, ground, n);
    const secret = made.host === "platform" ? tenant.token : tenant.key;
    const headers = { ...(made.anonymous ? {} : bearer(secret)), ...more };
    return call({ url, path, method: "POST", headers, body, deadlineMs: CALL_MS, localAddress: made.address });
  });
  await Promise.all(calls);
}

/** Nobody's, with a forged token, or of another's node: `amount` at most. */
async function upgrades(made: CallerMove, ground: Ground): Promise<void> {
  const { honest, hostile, platformUrl } = ground.facts;
  const [head, claims] = honest.node.identityToken.split(".");
  const token =
    made.kind === "foreign-upgrade"
      ? (hostile.link.nodes[0]?.identityToken ?? "")
      : `${head}.${claims}.${"A".repeat(86)}`;
  const authorization = made.kind === "anonymous-upgrade" ? "" : `authorization: Bearer ${token}\r\n`;
  const kinds = [
    { path: LINK_PATH(honest.node.id), upgrade: "websocket" },
    { path: TUNNEL_PATH(honest.node.id), upgrade: TUNNEL_UPGRADE },
  ];
  const total = Math.min(made.amount, MOST_UPGRADES);
  const until = performance.now() + HOLD_MS;
  const { host } = new URL(platformUrl);
  const lane = async (): Promise<void> => {
    for (let n = 0; n < total / made.parallel && performance.now() < until; n++) {
      const { path, upgrade } = kinds[n % 2] ?? { path: "/", upgrade: "" };
      const text = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: upgrade\r\nupgrade: ${upgrade}\r\n`;
      const bytes = [
        `${text}sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n${authorization}\r\n`,
      ];
      ground.sent += 1;
      const open = new Set<{ destroy(): unknown }>();
      const response = await rawExchange({
        url: platformUrl,
        localAddress: made.address,
        bytes,
        open,
        waitMs: CALL_MS,
      });
      for (const socket of open) socket.destroy();
      if (response.startsWith("HTTP/1.1 101")) ground.findings.push(`${made.kind} was let in`);
    }
  };
  await Promise.all(Array.from({ length: made.parallel }, lane));
}

/** Each password is hashed, since the form is a real one. */
async function signIns(made: CallerMove, ground: Ground): Promise<void> {
  const form = await openForm(ground.facts.platformUrl, made.address);
  if (form === null) return;
  const each = Array.from({ length: made.parallel }, (_, n) => {
    ground.sent += 1;
    return form.post("/sign-in", { email: `nobody${made.seed}-${n}@example.org`, password: "wrong password" });
  });
  await Promise.all(each);
}

/** Words that end like a file: what they cost may never exceed the key's budget. */
async function budget({ amount, parallel }: CallerMove, ground: Ground): Promise<void> {
  const size = Math.min(amount, 800_000);
  const content = `${"word ".repeat(size / 5)}${"a".repeat(5000)}`;
  await spend(
    ground,
    Array.from({ length: Math.min(parallel, 30) }, () => ({ max_tokens: 10, messages: [{ role: "user", content }] })),
  );
}

/** Numbers that upstreams may read otherwise than we do. */
async function oddNumbers({ parallel, seed }: CallerMove, ground: Ground): Promise<void> {
  const random = seededRandom(seed);
  const odd = [1.5, 1e300, -1, "1000", null, [5], true, 0];
  const pick = (): unknown => odd[Math.floor(random() * odd.length)];
  const messages = [{ role: "user", content: "Hello" }];
  await spend(
    ground,
    Array.from({ length: Math.min(parallel, 30) }, () => ({ n: pick(), max_tokens: pick(), messages })),
  );
}

const createdKey = z.object({ key: z.object({ id: z.string(), keyValue: z.string() }) });
const spentKey = z.object({ spent: z.object({ total: z.number() }) });

/** All calls at once on a new key, which has money for a few of them. */
async function spend(ground: Ground, bodies: readonly object[]): Promise<void> {
  const { modelsUrl: url, hostile } = ground.facts;
  const keys = `/v1/projects/${hostile.spender.projectId}/keys`;
  const limits = { budget: { total: BUDGET_NANO_DOLLARS } };
  const made = await asSpender(ground, {
    method: "POST",
    path: keys,
    body: JSON.stringify({ name: "budget", limits }),
  });
  if (made.status !== 200) return;
  const { key } = createdKey.parse(JSON.parse(made.text));
  const calls = bodies.map((body) => {
    ground.sent += 1;
    const text = JSON.stringify({ model: PRICED_MODEL, ...body });
    const path = "/v1/chat/completions";
    return call({ url, path, method: "POST", headers: bearer(key.keyValue), body: text, deadlineMs: 4 * CALL_MS });
  });
  await Promise.all(calls);
  // The ledger is written behind the calls.
  await sleep(LEDGER_MS);
  const told = await asSpender(ground, { path: `${keys}/${key.id}` });
  if (told.status === 200) {
    const { spent } = spentKey.parse(JSON.parse(told.text));
    if (spent.total > BUDGET_NANO_DOLLARS)
      ground.findings.push(`a key with a budget of ${BUDGET_NANO_DOLLARS} has spent ${spent.total} nano-dollars`);
  }
  await asSpender(ground, { method: "DELETE", path: `${keys}/${key.id}` });
}

function asSpender({ facts }: Ground, request: Pick<Call, "method" | "path" | "body">): Promise<Outcome> {
  const headers = bearer(facts.hostile.spender.token);
  return call({ url: facts.platformUrl, headers, deadlineMs: CALL_MS, ...request });
}
