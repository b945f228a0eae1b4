import type { Clock } from "@fairlead/protocol/clock";
import type { IdSource } from "@fairlead/protocol/ids";
import type { Logger } from "pino";
import type { InferenceCaller } from "../auth/principal.ts";
import type { WriteTogether } from "../db/opened-handle.ts";
import { WriteBehind } from "../db/write-behind.ts";
import type { CallEnd } from "../inference/inference-call.ts";
import { RepeatedRefusals } from "./repeated-refusals.ts";
import { recordedModel, type UsageRecord } from "./usage.ts";
import { UsageBatch } from "./usage-batch.ts";
import type { UsageStore } from "./usage-store.ts";

export interface UsageRecorderDeps {
  /** Of which only statements are asked: they are written together. */
  readonly usage: Pick<UsageStore, "statements">;
  readonly writeTogether: WriteTogether;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** How many wait for the store at most, at about half a kilobyte each, beside as many that it may just be writing. */
const MOST_WAITING = 50_000;

const REFUSALS_MS = 60_000;

/**
 * Writes down what calls used, behind them. The ledger is what money goes by; a crash loses the records of the last few
 * milliseconds here, and none there.
 */
export class UsageRecorder {
  readonly #deps: UsageRecorderDeps;
  readonly #written: WriteBehind<UsageBatch>;
  readonly #refusals = new RepeatedRefusals();
  /** Until refusals that were only counted are written, should no other call end before. */
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;

  constructor(deps: UsageRecorderDeps) {
    this.#deps = deps;
    this.#written = new WriteBehind({
      newBatch: () => new UsageBatch(),
      isEmpty: (batch) => batch.records.length === 0,
      write: (batch) => deps.writeTogether(deps.usage.statements(batch)),
      log: deps.log,
      what: "usage",
    });
  }

  /** Records that are lost because the store was away for too long. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Once for every call that has ended. */
  record(end: CallEnd): void {
    const record = this.#toRecord(end);
    if (isRefusal(end) && !this.#refusals.isFirst(record)) {
      this.#refusals.count(record);
      this.#timer ??= setTimeout(() => this.#writeRefusals(), REFUSALS_MS).unref();
      return;
    }
    this.#written.add((batch) => {
      if (batch.records.length >= MOST_WAITING) {
        this.#dropped++;
        return;
      }
      batch.add(record);
      this.#refusals.moveTo(batch);
    });
  }

  /** Writes all that was recorded until now. @throws the store's error. */
  async flush(): Promise<void> {
    this.#writeRefusals();
    await this.#written.flush();
  }

  /** Writes what is left, if the store takes it: what calls used is not worth a failed stop. */
  async close(): Promise<void> {
    this.#writeRefusals();
    await this.#written.close().catch((error: unknown) => {
      this.#deps.log.error({ err: error }, "what the last calls used is lost");
    });
  }

  #writeRefusals(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (!this.#refusals.isEmpty) this.#written.add((batch) => this.#refusals.moveTo(batch));
  }

  #toRecord(end: CallEnd): UsageRecord {
    const { id: requestId, caller, model, upstreamId: upstream, dialect, stream, outcome, status, usage } = end;
    const { estimated, cost, attempts, overheadMs, firstTokenMs, durationMs } = end;
    return {
      id: this.#deps.ids.next("usageRecord"),
      projectId: caller.projectId,
      requestId,
      at: this.#deps.clock.now(),
      ...whoIs(caller),
      model: model === null ? null : recordedModel(model),
      upstream,
      dialect,
      stream,
      outcome,
      status,
      inputTokens: usage?.inputTokens ?? 0,
      cachedInputTokens: usage?.cachedInputTokens ?? 0,
      outputTokens: usage?.outputTokens ?? 0,
      reasoningTokens: usage?.reasoningTokens ?? 0,
      estimated,
      cost,
      attempts,
      overheadMs,
      firstTokenMs,
      durationMs,
    };
  }
}

/** Refused before any upstream was asked. */
function isRefusal({ outcome, attempts }: CallEnd): boolean {
  return attempts === 0 && outcome !== "ok" && outcome !== "client_left" && outcome !== "replayed";
}

function whoIs(caller: InferenceCaller): Pick<UsageRecord, "keyId" | "userId" | "agentId"> {
  return {
    keyId: "keyId" in caller ? caller.keyId : null,
    userId: "userId" in caller ? caller.userId : null,
    agentId: "agentId" in caller ? caller.agentId : null,
  };
}
