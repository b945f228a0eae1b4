import { z } from "zod";

/** Providers' machine types for nodes. */

export const priceSchema = z.object({
  amount: z.string().describe("An exact decimal, excluding tax."),
  currency: z.string().describe("ISO 4217."),
});

export const planLocationSchema = z.object({
  name: z.string(),
  available: z
    .boolean()
    .describe("As last reported by the provider. Creating a machine may still fail for lack of capacity."),
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
    monthlyPrice: priceSchema
      .nullable()
      .describe("The lowest price of all locations. Null if no price is known or the plan is free."),
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
  from: z
    .enum(["catalogue", "provider"])
    .describe("`catalogue`: shipped with this release. `provider`: fetched from the provider."),
  at: z.string().describe("RFC 3339: when the data was current."),
});
export type PlanSource = z.infer<typeof planSourceSchema>;
