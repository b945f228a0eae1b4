import type { MachinePlan, PlanLocation } from "../machine-provider.ts";
import type { PlanCatalogue } from "./plan.ts";

/** Hetzner Cloud servers as published on that day, with an IPv4 address each; a refresh reads the current ones. */

/** Monthly and hourly prices in euros without tax. */
type Prices = readonly [monthly: string, hourly: string];

const PLACES = { europe: ["fsn1", "nbg1", "hel1"], america: ["ash", "hil"], singapore: ["sin"] } as const;
type Region = keyof typeof PLACES;

type Row = readonly [
  type: string,
  size: readonly [cores: number, memoryGb: number, diskGb: number],
  prices: Readonly<Partial<Record<Region, Prices>>>,
];

const ROWS: readonly Row[] = [
  ["cx23", [2, 4, 40], { europe: ["3.49", "0.0056"] }],
  ["cx33", [4, 8, 80], { europe: ["5.49", "0.0088"] }],
  ["cx43", [8, 16, 160], { europe: ["9.49", "0.0152"] }],
  ["cx53", [16, 32, 320], { europe: ["17.49", "0.028"] }],
  ["cax11", [2, 4, 40], { europe: ["3.79", "0.0061"] }],
  ["cax21", [4, 8, 80], { europe: ["6.49", "0.0104"] }],
  ["cax31", [8, 16, 160], { europe: ["12.49", "0.02"] }],
  ["cax41", [16, 32, 320], { europe: ["24.49", "0.0392"] }],
  ["cpx11", [2, 2, 40], { america: ["4.99", "0.008"] }],
  ["cpx12", [1, 2, 40], { singapore: ["6.49", "0.0104"] }],
  ["cpx21", [3, 4, 80], { america: ["9.49", "0.0153"] }],
  ["cpx22", [2, 4, 80], { europe: ["6.49", "0.0104"], singapore: ["12.49", "0.02"] }],
  ["cpx31", [4, 8, 160], { america: ["16.49", "0.0265"] }],
  ["cpx32", [4, 8, 160], { europe: ["10.99", "0.0176"], singapore: ["25.49", "0.0408"] }],
  ["cpx41", [8, 16, 240], { america: ["30.49", "0.0489"] }],
  ["cpx42", [8, 16, 320], { europe: ["19.99", "0.032"], singapore: ["43.49", "0.0697"] }],
  ["cpx51", [16, 32, 360], { america: ["60.49", "0.097"] }],
  ["cpx52", [12, 24, 480], { europe: ["28.49", "0.0457"], singapore: ["60.49", "0.0969"] }],
  ["cpx62", [16, 32, 640], { europe: ["38.99", "0.0625"], singapore: ["77.49", "0.1242"] }],
  ["ccx13", [2, 8, 80], { europe: ["12.49", "0.02"], america: ["13.49", "0.0217"], singapore: ["21.50", "0.0345"] }],
  [
    "ccx23",
    [4, 16, 160],
    { europe: ["24.49", "0.0392"], america: ["26.49", "0.0425"], singapore: ["39.90", "0.0639"] },
  ],
  ["ccx33", [8, 32, 240], { europe: ["48.49", "0.0777"], america: ["50.49", "0.081"], singapore: ["74.90", "0.12"] }],
  [
    "ccx43",
    [16, 64, 360],
    { europe: ["96.49", "0.1546"], america: ["100.49", "0.1611"], singapore: ["137.50", "0.2204"] },
  ],
  [
    "ccx53",
    [32, 128, 600],
    { europe: ["192.49", "0.3085"], america: ["200.49", "0.3213"], singapore: ["294.50", "0.472"] },
  ],
  [
    "ccx63",
    [48, 192, 960],
    { europe: ["288.49", "0.4623"], america: ["300.49", "0.4816"], singapore: ["482.50", "0.7732"] },
  ],
];

export const HETZNER_CATALOGUE: PlanCatalogue = {
  provider: "hetzner",
  at: Date.UTC(2025, 9, 21),
  plans: ROWS.map(
    ([type, [cores, memoryGb, diskGb], prices]): MachinePlan => ({
      type,
      cores,
      memoryMb: memoryGb * 1024,
      diskGb,
      gpu: null,
      locations: Object.entries(prices).flatMap(([region, price]) => placesOf(region as Region, price)),
    }),
  ),
};

function placesOf(region: Region, [monthly, hourly]: Prices): PlanLocation[] {
  return PLACES[region].map((name) => ({
    name,
    available: true,
    monthlyPrice: { amount: monthly, currency: "EUR" },
    hourlyPrice: { amount: hourly, currency: "EUR" },
  }));
}
