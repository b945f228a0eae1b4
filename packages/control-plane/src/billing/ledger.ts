import { rfc3339 } from "@fairlead/protocol/clock";
import { ONE_LINE } from "@fairlead/protocol/text";
import { z } from "zod";
import { spenderOf } from "./budget.ts";
import { MAX_NANO_DOLLARS } from "./money.ts";

/** The ledger: rows are added and never changed; a project's balance is their sum (design §9). Pure. */

/** `off`: nothing is asked for, usage is recorded all the same. `prepaid`: no call without the money for it. */
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
  /** Nano-dollars: credits and releases add, holds and settlements take. */
  readonly amount: number;
  /** The call that it is about, if any: the request id that its caller was told. */
  readonly callId: string | null;
  /** Of the key or the agent that called, if any. */
  readonly spenderId: string | null;
  /** For people; "" where there is nothing to say. */
  readonly note: string;
}

/** What is set aside for a call that runs, so that a crash loses nothing. */
export interface OpenHold {
  readonly callId: string;
  readonly projectId: string;
  readonly spenderId: string | null;
  /** Nano-dollars set aside. */
  readonly held: number;
  /** Nano-dollars that what the caller has surely got is worth. */
  readonly delivered: number;
  readonly openedAt: number;
}

/** What a change of a balance from outside is made of, on the wire. */
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
    .describe("For people: an invoice's number, for example."),
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
