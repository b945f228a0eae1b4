import { rfc3339 } from "@fairlead/protocol/values/clock";
import { MAX_NANO_DOLLARS } from "@fairlead/protocol/values/money";
import { ONE_LINE } from "@fairlead/protocol/values/text";
import { z } from "zod";
import { spenderOf } from "./budget.ts";

/** The ledger is append-only; a project's balance is the sum of its rows. Pure. */

/** `off`: calls are free, but usage is recorded. `prepaid`: calls need sufficient balance. */
export const BILLING_MODES = ["off", "prepaid"] as const;
export type BillingMode = (typeof BILLING_MODES)[number];

export const LEDGER_KINDS = ["credit", "hold", "release", "settle", "adjust"] as const;
export const ledgerKindSchema = z.enum(LEDGER_KINDS);
export type LedgerKind = z.infer<typeof ledgerKindSchema>;

export interface LedgerEntry {
  readonly id: string;
  readonly projectId: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly kind: LedgerKind;
  /** Nano-dollars: credits and releases are positive, holds and settlements negative. */
  readonly amount: number;
  /** The request id of the call, if any. */
  readonly callId: string | null;
  /** The calling key or agent, if any. */
  readonly spenderId: string | null;
  /** A note; "" for none. */
  readonly note: string;
}

/** The reservation of a running call, stored so that a crash loses nothing. */
export interface OpenHold {
  readonly callId: string;
  readonly projectId: string;
  readonly spenderId: string | null;
  /** Nano-dollars reserved. */
  readonly held: number;
  /** Nano-dollars of what the caller has certainly received. */
  readonly delivered: number;
  readonly openedAt: number;
  /** The incarnation of the process that runs the call. */
  readonly owner: string;
}

/** The wire form of a manual balance change. */
export const creditFields = {
  amountNanoDollars: z
    .number()
    .int()
    .min(-MAX_NANO_DOLLARS)
    .max(MAX_NANO_DOLLARS)
    .refine((amount) => amount !== 0, "must not be 0"),
  note: z
    .string()
    .trim()
    .max(200, "must have at most 200 characters")
    .regex(...ONE_LINE)
    .default("")
    .describe("A note, for example an invoice number."),
};

export const ledgerEntrySchema = z
  .object({
    id: z.string(),
    at: z.string(),
    kind: ledgerKindSchema,
    amountNanoDollars: z.number(),
    callId: z.string().nullable(),
    keyId: z.string().nullable(),
    agentId: z.string().nullable(),
    note: z.string(),
  })
  .meta({
    id: "LedgerEntry",
    examples: [
      {
        id: "led_01kc3b6q2v8r5x0m7n4t9w1yzf",
        at: "2026-03-02T09:31:12.000Z",
        kind: "credit",
        amountNanoDollars: 25_000_000_000,
        callId: null,
        keyId: null,
        agentId: null,
        note: "Invoice 17",
      },
    ],
  });

export function toLedgerEntry(entry: LedgerEntry): z.infer<typeof ledgerEntrySchema> {
  const { id, kind, callId, spenderId, note } = entry;
  const spender = spenderId === null ? null : spenderOf(spenderId);
  const whose = { keyId: spender === "key" ? spenderId : null, agentId: spender === "agent" ? spenderId : null };
  return { id, at: rfc3339(entry.at), kind, amountNanoDollars: entry.amount, callId, ...whose, note };
}
