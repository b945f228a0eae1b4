/** What the fake rents out: a small part of the real catalogue, with a type that is no longer sold among it. */

export interface Location {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly country: string;
  readonly city: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly network_zone: string;
}

interface Deprecation {
  readonly announced: string;
  readonly unavailable_after: string;
}

interface TypeLocation {
  readonly id: number;
  readonly name: string;
  readonly deprecation: Deprecation | null;
  readonly available: boolean;
  readonly recommended: boolean;
}

export interface ServerType {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly category: string;
  readonly cores: number;
  /** GB. */
  readonly memory: number;
  /** GB. */
  readonly disk: number;
  readonly cpu_type: "shared" | "dedicated";
  readonly architecture: "x86" | "arm";
  readonly storage_type: "local";
  readonly deprecated: boolean;
  readonly deprecation: Deprecation | null;
  readonly locations: readonly TypeLocation[];
  readonly prices: readonly object[];
}

export interface Image {
  readonly id: number;
  readonly name: string;
  readonly architecture: "x86" | "arm";
  readonly [field: string]: unknown;
}

function location(id: number, name: string, [city, country, zone]: readonly [string, string, string]): Location {
  const place = { city, country, latitude: 50 + id / 10, longitude: 12 + id / 10, network_zone: zone };
  return { id, name, description: `${city} DC Park 1`, ...place };
}

export const LOCATIONS: readonly Location[] = [
  location(1, "fsn1", ["Falkenstein", "DE", "eu-central"]),
  location(2, "nbg1", ["Nuremberg", "DE", "eu-central"]),
  location(3, "hel1", ["Helsinki", "FI", "eu-central"]),
  location(4, "ash", ["Ashburn, VA", "US", "us-east"]),
];

const NO_LONGER_SOLD: Deprecation = {
  announced: "2023-02-01T00:00:00+00:00",
  unavailable_after: "2023-05-01T00:00:00+00:00",
};

interface TypeSketch {
  readonly id: number;
  readonly name: string;
  /** Cores, GB of memory, GB of disk. */
  readonly size: readonly [number, number, number];
  readonly monthly: string;
  readonly hourly: string;
  readonly soldIn: readonly string[];
  readonly cpu?: "shared" | "dedicated";
  readonly architecture?: "x86" | "arm";
  readonly deprecation?: Deprecation;
}

function serverType(sketch: TypeSketch): ServerType {
  const { id, name, size, soldIn, cpu = "shared", architecture = "x86", deprecation = null } = sketch;
  const [cores, memory, disk] = size;
  const places = LOCATIONS.filter((place) => soldIn.includes(place.name));
  return {
    id,
    name,
    description: name.toUpperCase(),
    category: cpu === "shared" ? "Shared vCPU" : "Dedicated vCPU",
    cores,
    memory,
    disk,
    cpu_type: cpu,
    architecture,
    storage_type: "local",
    deprecated: deprecation !== null,
    deprecation,
    locations: places.map((place, index) => {
      const available = deprecation === null;
      return { id: place.id, name: place.name, deprecation, available, recommended: available && index === 0 };
    }),
    prices: places.map((place) => ({
      location: place.name,
      price_hourly: money(sketch.hourly),
      price_monthly: money(sketch.monthly),
      price_per_tb_traffic: money("1.0000000000"),
      included_traffic: 21_990_232_555_520,
    })),
  };
}

/** With the tax of Germany, to the provider's sixteen places. */
function money(net: string): { readonly net: string; readonly gross: string } {
  return { net, gross: `${(Number(net) * 1.19).toFixed(10)}000000` };
}

const EUROPE = ["fsn1", "nbg1", "hel1"];

export const SERVER_TYPES: readonly ServerType[] = [
  serverType({
    id: 1,
    name: "cx11",
    size: [1, 2, 20],
    monthly: "3.2900000000",
    hourly: "0.0053000000",
    soldIn: EUROPE,
    deprecation: NO_LONGER_SOLD,
  }),
  serverType({
    id: 104,
    name: "cx22",
    size: [2, 4, 40],
    monthly: "3.7900000000",
    hourly: "0.0060000000",
    soldIn: EUROPE,
  }),
  serverType({
    id: 105,
    name: "cx32",
    size: [4, 8, 80],
    monthly: "6.8000000000",
    hourly: "0.0109000000",
    soldIn: EUROPE,
  }),
  serverType({
    id: 22,
    name: "cpx11",
    size: [2, 2, 40],
    monthly: "4.3500000000",
    hourly: "0.0070000000",
    soldIn: [...EUROPE, "ash"],
  }),
  serverType({
    id: 45,
    name: "cax11",
    size: [2, 4, 40],
    monthly: "3.7900000000",
    hourly: "0.0060000000",
    soldIn: EUROPE,
    architecture: "arm",
  }),
  serverType({
    id: 96,
    name: "ccx13",
    size: [2, 8, 80],
    monthly: "12.4900000000",
    hourly: "0.0200000000",
    soldIn: [...EUROPE, "ash"],
    cpu: "dedicated",
  }),
];

function image(id: number, [name, flavor, version]: readonly [string, string, string], arm = false): Image {
  return {
    id,
    name,
    architecture: arm ? "arm" : "x86",
    description: name,
    type: "system",
    status: "available",
    os_flavor: flavor,
    os_version: version,
    rapid_deploy: true,
    image_size: null,
    disk_size: 5,
    created: "2024-01-01T00:00:00+00:00",
    created_from: null,
    bound_to: null,
    deleted: null,
    deprecated: null,
    labels: {},
    protection: { delete: false },
  };
}

export const IMAGES: readonly Image[] = [
  image(114_690_387, ["debian-12", "debian", "12"]),
  image(114_690_389, ["debian-12", "debian", "12"], true),
  image(161_547_269, ["ubuntu-24.04", "ubuntu", "24.04"]),
  image(161_547_270, ["ubuntu-24.04", "ubuntu", "24.04"], true),
];

/** @param soldOut whether a type is shown as not available there. */
export function withStock(type: ServerType, soldOut: (type: string, location: string) => boolean): ServerType {
  const locations = type.locations.map((place) =>
    soldOut(type.name, place.name) ? { ...place, available: false, recommended: false } : place,
  );
  return { ...type, locations };
}

/** What `GET /pricing` tells: beside servers, a price of each other kind. @param currency ISO 4217 */
export function pricing(currency: string): object {
  const places = LOCATIONS.map(({ name }) => name);
  const monthly = places.map((location) => ({ location, price_monthly: money("3.0000000000") }));
  const both = places.map((location) => ({
    location,
    price_hourly: money("0.0008000000"),
    price_monthly: money("0.5000000000"),
  }));
  return {
    currency,
    vat_rate: "19.000000",
    floating_ip: { price_monthly: money("3.0000000000") },
    floating_ips: [{ type: "ipv4", prices: monthly }],
    image: { price_per_gb_month: money("0.0110000000") },
    load_balancer_types: [],
    primary_ips: [{ type: "ipv4", prices: both }],
    server_backup: { percentage: "20.0000000000" },
    server_types: SERVER_TYPES.map(({ id, name, prices }) => ({ id, name, prices })),
    volume: { price_per_gb_month: money("0.0440000000") },
  };
}
