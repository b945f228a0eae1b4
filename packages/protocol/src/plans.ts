import { z } from "zod";

/** Machine types of providers that a node can be created on. */

export const priceSchema = z.object({
  amount: z.string().describe("An exact decimal, without tax."),
  currency: z.string().describe("ISO 4217."),
});

export const planLocationSchema = z.object({
  name: z.string(),
  available: z.boolean().describe("As the provider last said; a create may still find no capacity there."),
  monthlyPrice: priceSchema.nullable(),
  hourlyPrice: priceSchema.nullable(),
});

export const planSchema = z
  .object({
    id: z.string().describe("`<provider>:<type>`: the `planId` of a node."),
    provider: z.string(),
    type: z.string(),
    cores: z.number(),
    memoryMb: z.number(),
    diskGb: z.number(),
    gpu: z.object({ model: z.string(), count: z.number() }).nullable(),
    monthlyPrice: priceSchema.nullable().describe("Where it is cheapest; null where no price is known, or none asked."),
    hourlyPrice: priceSchema.nullable(),
    locations: z.array(planLocationSchema),
  })
  .meta({
    id: "Plan",
    examples: [
      {
        id: "hetzner:cx23",
        provider: "hetzner",
        type: "cx23",
        cores: 2,
        memoryMb: 4096,
        diskGb: 40,
        gpu: null,
        monthlyPrice: { amount: "3.49", currency: "EUR" },
        hourlyPrice: { amount: "0.0056", currency: "EUR" },
        locations: [
          {
            name: "fsn1",
            available: true,
            monthlyPrice: { amount: "3.49", currency: "EUR" },
            hourlyPrice: { amount: "0.0056", currency: "EUR" },
          },
        ],
      },
    ],
  });
export type Plan = z.infer<typeof planSchema>;

export const planSourceSchema = z.object({
  provider: z.string(),
  from: z.enum(["catalogue", "provider"]).describe("`catalogue`: came with this program; `provider`: asked of it."),
  at: z.string().describe("RFC 3339: when it held."),
});
export type PlanSource = z.infer<typeof planSourceSchema>;
