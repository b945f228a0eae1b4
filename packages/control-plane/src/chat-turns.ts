import { SessionLocks } from "./chat/session-locks.ts";
import { TurnCounters } from "./chat/turn-counters.ts";
import { TurnService } from "./chat/turn-service.ts";
import type { Context } from "./context.ts";
import type { InferenceHost } from "./inference/inference-host.ts";
import type { Services } from "./services.ts";

/** Composition: turns of chat sessions, which stand on the inference host's pipeline. */

export interface ChatTurns {
  readonly chatTurns: TurnService;
  readonly turnCounters: TurnCounters;
}

/** A crash costs at most that much of a running answer. */
const FLUSH_MS = 1000;

export function createChatTurns(
  { config, log, ports: { clock } }: Context,
  { turnLog: turns, chatSessions: sessions, models }: Services,
  { pipeline }: InferenceHost,
): ChatTurns {
  const turnCounters = new TurnCounters();
  const { onLeave } = config.chat;
  const parts = { pipeline, turns, sessions, models, clock, log, onLeave, flushMs: FLUSH_MS };
  return { turnCounters, chatTurns: new TurnService({ ...parts, locks: new SessionLocks(), counters: turnCounters }) };
}
