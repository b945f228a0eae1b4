import type { DaemonRouter } from "@fairlead/control-plane/daemon-router";
import {
  heartbeatAnswerSchema,
  helloAnswerSchema,
  LINK_FLOODED,
  LINK_PATH,
  LINK_TAKEN_OVER,
  MAX_LINK_CALLS,
  workerTokenAnswerSchema,
} from "@fairlead/protocol/daemon-link";
import { secretAnswerSchema } from "@fairlead/protocol/secrets";
import { urlBelow } from "@fairlead/protocol/values/url";
import { type DesiredState, desiredStateSchema } from "@fairlead/protocol/workload";
import { connectionVia } from "@fairlead/wire/proxy/proxy-connect";
import { NO_PROXIES, type ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import { createTRPCClient, createWSClient, type TRPCClient, TRPCClientError, wsLink } from "@trpc/client";
import { WebSocket } from "ws";
import { z } from "zod";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { CallSlots } from "./call-slots.ts";
import {
  CallRejected,
  type ControlLink,
  type LinkConnection,
  LinkFlooded,
  LinkRefused,
  LinkTakenOver,
} from "./control-link.ts";
import { retryAfterMs } from "./http-client.ts";

export interface TrpcLinkOptions {
  readonly platformUrl: string;
  readonly nodeId: string;
  readonly token: () => Promise<string>;
  /** Called with a token that the platform host rejected with 401. */
  readonly onTokenRefused: (token: string) => void;
  readonly log: DaemonLog;
  readonly proxies?: Pick<ProxyRules, "find">;
  readonly callTimeoutMs?: number;
  readonly keepAlive?: KeepAlive;
}

/** Detects dead connections. */
export interface KeepAlive {
  readonly intervalMs: number;
  readonly pongTimeoutMs: number;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;
const CALL_TIMEOUT_MS = 15_000;
/** Concurrent requests for secrets and tokens: half of the control plane's limit per link. */
const MAX_QUESTIONS = MAX_LINK_CALLS / 2;
/** Desired states are small; this limits the memory that a broken server can use up. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Generous, because responses are slow while a whole fleet reconnects; retrying early would make it worse. */
const KEEP_ALIVE: KeepAlive = { intervalMs: 20_000, pongTimeoutMs: 15_000 };
/** By default, ws waits 30 s for the closing handshake of a dead peer; `closeTimeout` is missing from its types. */
const CLOSE_TIMEOUT = { closeTimeout: 1500 };

/** The daemon link over tRPC. Every attempt uses a new WebSocket. */
export function createTrpcLink(options: TrpcLinkOptions): ControlLink {
  const url = new URL(urlBelow(options.platformUrl, LINK_PATH(options.nodeId)));
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return {
    connect: async (signal) => {
      const token = await options.token();
      try {
        const { log, proxies = NO_PROXIES, callTimeoutMs = CALL_TIMEOUT_MS, keepAlive = KEEP_ALIVE } = options;
        return await openConnection({ url, token, signal, log, proxies, callTimeoutMs, keepAlive });
      } catch (error) {
        if (error instanceof LinkRefused && error.status === 401) options.onTokenRefused(token);
        throw error;
      }
    },
  };
}

interface OpenOptions {
  readonly url: URL;
  readonly proxies: Pick<ProxyRules, "find">;
  readonly token: string;
  readonly signal: AbortSignal;
  readonly log: DaemonLog;
  readonly callTimeoutMs: number;
  readonly keepAlive: KeepAlive;
}

/** Reports how a socket opened or ended. Its listeners are registered before the library's, so they run first. */
interface SocketFate {
  opened(socket: WebSocket): void;
  ended(error: Error): void;
}

function openConnection(options: OpenOptions): Promise<LinkConnection> {
  const opening = Promise.withResolvers<LinkConnection>();
  const lost = Promise.withResolvers<Error>();
  const closed = new AbortController();
  let socket: WebSocket | null = null;
  const end = (error: Error): void => {
    if (closed.signal.aborted) return;
    closed.abort(error);
    options.signal.removeEventListener("abort", onAbort);
    // Before the library sees it and starts to reconnect.
    client.close().catch(() => null);
    socket?.terminate();
    opening.reject(error);
    lost.resolve(error);
  };
  const onAbort = (): void => end(new Error("the link was closed"));
  const client = createWSClient({
    url: options.url.href,
    WebSocket: linkSocketClass(options, {
      opened: (opened) => {
        socket = opened;
        if (closed.signal.aborted) opened.terminate();
        else opening.resolve(connectionOver({ ...options, trpc, closed: closed.signal, lost: lost.promise, end }));
      },
      ended: end,
    }),
    // When a stopping server asks for it, the library would reconnect on its own.
    retryDelayMs: () => {
      end(new Error("the control plane requested a new link"));
      return 0;
    },
    keepAlive: { enabled: true, ...options.keepAlive },
  });
  const trpc = createTRPCClient<DaemonRouter>({ links: [wsLink({ client })] });
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  return opening.promise;
}

function linkSocketClass({ url, token, proxies }: OpenOptions, fate: SocketFate): typeof globalThis.WebSocket {
  const socketClass = class LinkSocket extends WebSocket {
    constructor(address: string | URL) {
      super(address, {
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        ...CLOSE_TIMEOUT,
        ...connectionVia(proxies.find(url), url),
        maxPayload: MAX_MESSAGE_BYTES,
        headers: { authorization: `Bearer ${token}` },
      });
      this.on("open", () => fate.opened(this));
      this.on("unexpected-response", (request, response) => {
        fate.ended(new LinkRefused(response.statusCode ?? 0, retryAfterMs(response.headers)));
        request.destroy();
      });
      this.on("error", (error) => fate.ended(new Error(`the link failed: ${error.message}`, { cause: error })));
      this.on("close", (code, reason) => fate.ended(closedWith(code, reason.toString())));
    }
  };
  // The differences from the browser's types do not affect the library.
  return socketClass as unknown as typeof globalThis.WebSocket;
}

function closedWith(code: number, reason: string): Error {
  if (code === LINK_TAKEN_OVER) return new LinkTakenOver();
  return code === LINK_FLOODED ? new LinkFlooded(reason) : new Error(`the link closed with code ${code}`);
}

interface ConnectionParts {
  readonly trpc: TRPCClient<DaemonRouter>;
  readonly closed: AbortSignal;
  readonly lost: Promise<Error>;
  readonly end: (error: Error) => void;
  readonly callTimeoutMs: number;
  readonly log: DaemonLog;
}

function connectionOver({ trpc, closed, lost, end, callTimeoutMs, log }: ConnectionParts): LinkConnection {
  const within = (): { signal: AbortSignal } => ({
    signal: AbortSignal.any([closed, AbortSignal.timeout(callTimeoutMs)]),
  });
  const slots = new CallSlots(MAX_QUESTIONS);
  let subscription: { replace(): void } | null = null;
  return {
    hello: async (hello) => helloAnswerSchema.parse(await answered(trpc.hello.mutate(hello, within()))),
    heartbeat: async (heartbeat) =>
      heartbeatAnswerSchema.parse(await answered(trpc.heartbeat.mutate(heartbeat, within()))),
    observe: async (observation) => {
      await answered(trpc.observe.mutate(observation, within()));
    },
    events: async (events) => {
      await answered(trpc.events.mutate([...events], within()));
    },
    secret: (request) =>
      slots.run(async () => secretAnswerSchema.parse(await answered(trpc.secret.query(request, within())))),
    workerToken: (request) =>
      slots.run(async () => workerTokenAnswerSchema.parse(await answered(trpc.workerToken.query(request, within())))),
    goodbye: async () => {
      await answered(trpc.goodbye.mutate(undefined, within()));
    },
    subscribe: (onState) => {
      subscription?.replace();
      subscription = openSubscription({ trpc, onState, end, log });
    },
    lost,
    close: () => end(new Error("the link was closed")),
  };
}

/** @throws CallRejected instead of the library's error, if it is a rejection */
async function answered<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw error instanceof TRPCClientError ? (rejectionOf(error) ?? error) : error;
  }
}

const rejectionSchema = z.object({ code: z.string(), retryAfterMs: z.number().min(0).max(3_600_000).optional() });

function rejectionOf({ data, message }: TRPCClientError<DaemonRouter>): CallRejected | null {
  const { code, retryAfterMs } = rejectionSchema.safeParse(data).data ?? {};
  if (code === "TOO_MANY_REQUESTS") return new CallRejected("busy", message, retryAfterMs);
  return code === "BAD_REQUEST" ? new CallRejected("invalid", message) : null;
}

interface SubscriptionParts extends Pick<ConnectionParts, "trpc" | "end" | "log"> {
  readonly onState: (state: DesiredState) => void;
}

function openSubscription({ trpc, onState, end, log }: SubscriptionParts): { replace(): void } {
  let current = true;
  const ended = (why: string): void => {
    if (current) end(new Error(`the subscription ended: ${why}`));
  };
  const handle = trpc.desiredState.subscribe(
    { lastEventId: null },
    {
      onData: ({ data }: { readonly data: unknown }) => {
        const parsed = desiredStateSchema.safeParse(data);
        if (!parsed.success)
          log.error(
            { reason: parsed.error.message },
            "cannot read the desired state from the control plane; keeping the last one",
          );
        else if (current) onState(parsed.data);
      },
      onError: (error) => ended(reasonOf(error)),
      onComplete: () => ended("stopped by the control plane"),
    },
  );
  return {
    replace: () => {
      current = false;
      handle.unsubscribe();
    },
  };
}
