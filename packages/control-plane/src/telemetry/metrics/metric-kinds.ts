import { Counter, Gauge, type Registry } from "prom-client";
import { DistributionMetric, type LabelledDistribution } from "./distribution-metric.ts";

/** Adds values that are counted elsewhere to prom-client's registry; they are read on each scrape. */

/** Adds related figures to the registry. */
export type MetricSet = (registry: Registry) => void;

type Labels = Readonly<Record<string, string | number>>;
export type Sample = readonly [labels: Labels, value: number];

interface Reading {
  readonly help: string;
  readonly labelNames?: readonly string[];
  readonly read: () => readonly Sample[] | Promise<readonly Sample[]>;
}

interface DistributionReading {
  readonly help: string;
  readonly labelNames?: readonly string[];
  readonly read: () => readonly LabelledDistribution[];
}

export function counter(registry: Registry, name: string, { read, ...words }: Reading): void {
  new Counter({
    name,
    ...words,
    registers: [registry],
    async collect() {
      const samples = await read();
      this.reset();
      for (const [labels, value] of samples) this.inc(labels, value);
    },
  });
}

export function gauge(registry: Registry, name: string, { read, ...words }: Reading): void {
  new Gauge({
    name,
    ...words,
    registers: [registry],
    async collect() {
      const samples = await read();
      this.reset();
      for (const [labels, value] of samples) this.set(labels, value);
    },
  });
}

export function distribution(registry: Registry, name: string, reading: DistributionReading): void {
  registry.registerMetric(new DistributionMetric(name, reading) as never);
}
