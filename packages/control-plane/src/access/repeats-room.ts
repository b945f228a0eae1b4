import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Database } from "../installation/db/tables/schema.ts";
import type { Installation } from "../installation/installation-room.ts";
import { keptFor } from "../installation/process/retention.ts";
import { asRoom } from "../room.ts";
import { AnswerService } from "./answers/answer-service.ts";
import { AnswerStore } from "./answers/answer-store.ts";
import { IdempotencyService } from "./idempotency/idempotency-service.ts";
import { IdempotencyStore } from "./idempotency/idempotency-store.ts";

interface RepeatOptions {
  readonly clock: Clock;
  readonly installation: Installation;
}

export type Repeats = ReturnType<typeof openRepeats>;

/** Makes repeated requests take effect once. */
export function openRepeats({ clock, installation }: RepeatOptions) {
  const { db, writes, longReads, sealer } = installation;
  return asRoom({
    idempotency: new IdempotencyService({ db, clock }),
    answers: new AnswerService({ clock, answers: new AnswerStore(db), writes: new AnswerStore(writes), sealer }),
    retentions: repeatRetentions(longReads, clock),
  });
}

/** @param longReads so that deletions block no other statement. */
export function repeatRetentions(longReads: Kysely<Database>, clock: Clock) {
  const records = new IdempotencyStore(longReads);
  const answers = new AnswerStore(longReads);
  const often = { everyMs: 600_000, clock };
  return [
    keptFor({ what: "idempotency records", ...often, remove: (at, limit) => records.deleteExpired(at, limit) }),
    keptFor({ what: "stored responses", ...often, remove: (at, limit) => answers.deleteExpired(at, limit) }),
  ] as const;
}
