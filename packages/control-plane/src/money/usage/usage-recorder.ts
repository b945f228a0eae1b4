import type { CallEnd } from "@fairlead/inference/calls/inference-call";
import type { InferenceCaller } from "@fairlead/inference/ports/inference-caller";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { IdSource } from "@fairlead/protocol/values/ids";
import type { Logger } from "pino";
import type { WriteTogether } from "../../installation/db/opened-handle.ts";
import { WriteBehind } from "../../installation/db/write-behind.ts";
import { recordedModel, type UsageRecord } from "./usage.ts";
import { UsageBatch } from "./usage-batch.ts";
import type { UsageStore } from "./usage-store.ts";

const MINUTE_MS = 60_000;
/** Names that are known of a minute; beyond them refusals count in the sums alone. */
const MOST_NAMES = 10_000;

/**
 * Refusals before any upstream was asked, of which a program that does not listen can make thousands in a second: the first of its
 * caller and code in a minute leaves a record, all of them count in the sums of their hours.
 */
class RepeatedRefusals {
  #minute = -1;
  readonly #names = new Set<string>();
  #counted = new UsageBatch();
  #last: UsageRecord | null = null;

  /** Whether it leaves a record. Asked once for each. */
  isFirst({ at, projectId, keyId, userId, agentId, outcome }: UsageRecord): boolean {
    const minute = Math.floor(at / MINUTE_MS);
    if (minute !== this.#minute) this.#names.clear();
    this.#minute = minute;
    const name = JSON.stringify([projectId, keyId, userId, agentId, outcome]);
    if (this.#names.has(name) || this.#names.size >= MOST_NAMES) return false;
    this.#names.add(name);
    return true;
  }

  /** @param record one that leaves none. */
  count(record: UsageRecord): void {
    this.#counted.count(record);
    this.#last = record;
  }

  get isEmpty(): boolean {
    return this.#last === null;
  }

  /** Hands over what was counted, to a batch with a record: by its id a batch is refused that is written twice. */
  moveTo(batch: UsageBatch): void {
    if (this.#last === null) return;
    if (batch.records.length === 0) batch.records.push(this.#last);
    batch.join(this.#counted);
    this.#counted = new UsageBatch();
    this.#last = null;
  }
}

export interface UsageRecorderDeps {
  /** Only its statements are used: they are written together. */
  readonly usage: Pick<UsageStore, "statements">;
  readonly writeTogether: WriteTogether;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** Maximum waiting records, about half a kilobyte each, plus as many being written. */
const MOST_WAITING = 50_000;

const REFUSALS_MS = 60_000;

/** Records usage behind the calls. Money follows the ledger; a crash loses a few milliseconds of records here, and nothing there. */
export class UsageRecorder {
  readonly #deps: UsageRecorderDeps;
  readonly #written: WriteBehind<UsageBatch>;
  readonly #refusals = new RepeatedRefusals();
  /** When to write counted rejections if no other call ends first. */
  #timer: NodeJS.Timeout | null = null;
  #dropped = 0;

  constructor(deps: UsageRecorderDeps) {
    this.#deps = deps;
    this.#written = new WriteBehind({
      newBatch: () => new UsageBatch(),
      isEmpty: (batch) => batch.records.length === 0,
      write: (batch) => deps.writeTogether(deps.usage.statements(batch)),
      clock: deps.clock,
      log: deps.log,
      what: "usage",
    });
  }

  /** Records lost while the store was unavailable for too long. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Called once per finished call. */
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

  /** Writes everything recorded so far. @throws the store's error. */
  async flush(): Promise<void> {
    this.#writeRefusals();
    await this.#written.flush();
  }

  /** Writes what is left, if possible: losing usage must not fail the shutdown. */
  async close(): Promise<void> {
    this.#writeRefusals();
    await this.#written.close().catch((error: unknown) => {
      this.#deps.log.error({ err: error }, "the usage of the last calls was lost");
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

/** Rejected before any upstream was called. */
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
