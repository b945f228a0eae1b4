import type { DaemonRouter } from "@fairlead/control-plane/daemon-router";
import {
  heartbeatAnswerSchema,
  helloAnswerSchema,
  LINK_PATH,
  LINK_TAKEN_OVER,
  workerTokenAnswerSchema,
} from "@fairlead/protocol/daemon-link";
import { secretAnswerSchema } from "@fairlead/protocol/secrets";
import { type DesiredState, desiredStateSchema } from "@fairlead/protocol/workload";
import { createTRPCClient, createWSClient, type TRPCClient, wsLink } from "@trpc/client";
import { WebSocket } from "ws";
import { type Log, reasonOf } from "../log.ts";
import { type ControlLink, type LinkConnection, LinkRefused, LinkTakenOver } from "./control-link.ts";
import { retryAfterMs } from "./http-client.ts";

export interface TrpcLinkOptions {
  readonly platformUrl: string;
  readonly nodeId: string;
  readonly token: () => Promise<string>;
  /** Called with a token that the platform host did not take (status 401). */
  readonly onTokenRefused: (token: string) => void;
  readonly log: Log;
  readonly callTimeoutMs?: number;
  readonly keepAlive?: KeepAlive;
}

/** A connection that fell silent without a word is only noticed by asking. */
export interface KeepAlive {
  readonly intervalMs: number;
  readonly pongTimeoutMs: number;
}

const HANDSHAKE_TIMEOUT_MS = 10_000;
const CALL_TIMEOUT_MS = 15_000;
/** Desired states are small; this only bounds what a broken server can make the daemon hold. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** The answer of a server that a whole fleet comes back to may lie unread for a while: cut too soon, the herd would feed itself. */
const KEEP_ALIVE: KeepAlive = { intervalMs: 20_000, pongTimeoutMs: 15_000 };
/** ws waits 30 s for a closing handshake that a dead peer never answers; `closeTimeout` is not in its types. */
const CLOSE_TIMEOUT = { closeTimeout: 1500 };

/** The daemon link over tRPC and one WebSocket per attempt. A connection that is lost is never reused. */
export function createTrpcLink(options: TrpcLinkOptions): ControlLink {
  const url = new URL(LINK_PATH(options.nodeId), options.platformUrl);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return {
    connect: async (signal) => {
      const token = await options.token();
      try {
        const { log, callTimeoutMs = CALL_TIMEOUT_MS, keepAlive = KEEP_ALIVE } = options;
        return await openConnection({ url: url.href, token, signal, log, callTimeoutMs, keepAlive });
      } catch (error) {
        if (error instanceof LinkRefused && error.status === 401) options.onTokenRefused(token);
        throw error;
      }
    },
  };
}

interface OpenOptions {
  readonly url: string;
  readonly token: string;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly callTimeoutMs: number;
  readonly keepAlive: KeepAlive;
}

/** What a socket's listeners tell: it opened, or how it ended. They stand before the library's, so they run first. */
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
    // Before the library hears of it, or it would begin to reconnect.
    client.close().catch(() => null);
    socket?.terminate();
    opening.reject(error);
    lost.resolve(error);
  };
  const onAbort = (): void => end(new Error("the link was closed"));
  const client = createWSClient({
    url: options.url,
    WebSocket: linkSocketClass(options.token, {
      opened: (opened) => {
        socket = opened;
        if (closed.signal.aborted) opened.terminate();
        else opening.resolve(connectionOver({ ...options, trpc, closed: closed.signal, lost: lost.promise, end }));
      },
      ended: end,
    }),
    // Reconnecting is ours: asked to (a server that stops says so), the library would open a socket of its own, or wait to.
    retryDelayMs: () => {
      end(new Error("the control plane asks for a new link"));
      return 0;
    },
    keepAlive: { enabled: true, ...options.keepAlive },
  });
  const trpc = createTRPCClient<DaemonRouter>({ links: [wsLink({ client })] });
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  return opening.promise;
}

function linkSocketClass(token: string, fate: SocketFate): typeof globalThis.WebSocket {
  const socketClass = class LinkSocket extends WebSocket {
    constructor(address: string | URL) {
      const timeouts = { handshakeTimeout: HANDSHAKE_TIMEOUT_MS, ...CLOSE_TIMEOUT };
      super(address, { ...timeouts, maxPayload: MAX_MESSAGE_BYTES, headers: { authorization: `Bearer ${token}` } });
      this.on("open", () => fate.opened(this));
      this.on("unexpected-response", (request, response) => {
        fate.ended(new LinkRefused(response.statusCode ?? 0, retryAfterMs(response.headers)));
        request.destroy();
      });
      this.on("error", (error) => fate.ended(new Error(`the link failed: ${error.message}`, { cause: error })));
      this.on("close", (code) =>
        fate.ended(code === LINK_TAKEN_OVER ? new LinkTakenOver() : new Error(`the link closed with code ${code}`)),
      );
    }
  };
  // Its types differ from the browser's in ways that the library does not touch.
  return socketClass as unknown as typeof globalThis.WebSocket;
}

interface ConnectionParts {
  readonly trpc: TRPCClient<DaemonRouter>;
  readonly closed: AbortSignal;
  readonly lost: Promise<Error>;
  readonly end: (error: Error) => void;
  readonly callTimeoutMs: number;
  readonly log: Log;
}

function connectionOver({ trpc, closed, lost, end, callTimeoutMs, log }: ConnectionParts): LinkConnection {
  const within = (): { signal: AbortSignal } => ({
    signal: AbortSignal.any([closed, AbortSignal.timeout(callTimeoutMs)]),
  });
  let subscription: { replace(): void } | null = null;
  return {
    hello: async (hello) => helloAnswerSchema.parse(await trpc.hello.mutate(hello, within())),
    heartbeat: async (heartbeat) => heartbeatAnswerSchema.parse(await trpc.heartbeat.mutate(heartbeat, within())),
    observe: async (observation) => {
      await trpc.observe.mutate(observation, within());
    },
    events: async (events) => {
      await trpc.events.mutate([...events], within());
    },
    secret: async (request) => secretAnswerSchema.parse(await trpc.secret.query(request, within())),
    workerToken: async (request) => workerTokenAnswerSchema.parse(await trpc.workerToken.query(request, within())),
    subscribe: (onState) => {
      subscription?.replace();
      subscription = openSubscription({ trpc, onState, end, log });
    },
    lost,
    close: () => end(new Error("the link was closed")),
  };
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
            "the control plane sent a desired state that this daemon cannot read; keeping the last one",
          );
        else if (current) onState(parsed.data);
      },
      onError: (error) => ended(reasonOf(error)),
      onComplete: () => ended("the control plane stopped it"),
    },
  );
  return {
    replace: () => {
      current = false;
      handle.unsubscribe();
    },
  };
}
