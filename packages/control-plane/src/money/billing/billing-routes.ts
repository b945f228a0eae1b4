import type { FastifySchema } from "fastify";
import { z } from "zod";
import { idempotencyHeaders, REPLAYED_HEADER } from "../../access/idempotency/idempotency-key.ts";
import type { IdempotencyService } from "../../access/idempotency/idempotency-service.ts";
import type { Once } from "../../access/idempotency/once.ts";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { pageQuery, paginate } from "../../http/requests/pagination.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import type { BillingAccessService } from "./billing-access-service.ts";
import { BILLING_MODES, creditFields, type LedgerEntry, ledgerEntrySchema, toLedgerEntry } from "./ledger.ts";

export interface BillingRouteServices {
  readonly billingAccess: BillingAccessService;
  readonly idempotency: IdempotencyService;
}

const tags = ["Billing"];
const params = z.object({ id: reference("The project ID.") });

const getBalance = {
  summary: "Get a project's balance",
  description: "In nano-dollars (10⁻⁹ USD). When a call ends, the amount reserved for it is returned, less its cost.",
  operationId: "getBalance",
  tags,
  errors: ["not_found", "permission_denied"],
  params,
  response: {
    200: z
      .object({
        mode: z.enum(BILLING_MODES),
        balanceNanoDollars: z.number().describe("The amount available to new calls."),
        heldNanoDollars: z.number().describe("The amount reserved by calls in progress."),
        runningCalls: z.number(),
      })
      .meta({
        id: "Balance",
        examples: [
          { mode: "prepaid", balanceNanoDollars: 24_870_000_000, heldNanoDollars: 130_000_000, runningCalls: 2 },
        ],
      }),
  },
} satisfies FastifySchema;

const listLedger = {
  summary: "List a project's ledger",
  description: "Every change of the balance, newest first. The balance is the sum of all amounts.",
  operationId: "listLedger",
  tags,
  errors: ["not_found", "permission_denied"],
  params,
  querystring: z.object(pageQuery),
  response: { 200: z.object({ ledgerEntries: z.array(ledgerEntrySchema), nextPageToken: z.string() }) },
} satisfies FastifySchema;

const addCredits = {
  summary: "Add credits to a project",
  description:
    "Only for platform administrators. A negative amount removes credits that are neither spent nor reserved.",
  operationId: "addCredits",
  tags,
  errors: ["not_found", "permission_denied", "idempotency_mismatch"],
  headers: idempotencyHeaders,
  params,
  body: z.strictObject(creditFields).meta({ examples: [{ amountNanoDollars: 25_000_000_000, note: "Invoice 17" }] }),
  response: { 200: z.object({ ledgerEntry: ledgerEntrySchema }) },
} satisfies FastifySchema;

export function registerBillingRoutes(app: PlatformApp, { billingAccess, idempotency }: BillingRouteServices): void {
  const onRequest = requirePrincipal("user");

  app.get("/v1/projects/:id/balance", { onRequest, schema: getBalance }, async (request) => {
    const { mode, free, held, runningCalls } = await billingAccess.balance(
      principalOf(request, "user"),
      request.params.id,
    );
    return { mode, balanceNanoDollars: free, heldNanoDollars: held, runningCalls };
  });

  app.get("/v1/projects/:id/ledger", { onRequest, schema: listLedger }, async (request) => {
    const caller = principalOf(request, "user");
    const { items, nextPageToken } = await paginate(request.query, {
      fetch: (page) => billingAccess.ledger(caller, request.params.id, page),
      cursorOf: (entry) => entry.id,
    });
    return { ledgerEntries: items.map(toLedgerEntry), nextPageToken };
  });

  app.post("/v1/projects/:id/credits", { onRequest, schema: addCredits }, async (request, reply) => {
    const caller = principalOf(request, "user");
    const projectId = request.params.id;
    const { amountNanoDollars: amount, note } = request.body;
    const call = { key: request.headers["idempotency-key"], userId: caller.userId, projectId };
    const { answer, replayed } = await idempotency.create(
      { ...call, route: "POST /v1/projects/{id}/credits", body: request.body },
      {
        make: (once: Once<LedgerEntry>) => billingAccess.credit(caller, { projectId, amount, note }, once),
        answer: (entry) => ({ ledgerEntry: toLedgerEntry(entry) }),
        idOf: (entry) => entry.id,
      },
    );
    if (replayed) void reply.header(REPLAYED_HEADER, "true");
    return answer;
  });
}
