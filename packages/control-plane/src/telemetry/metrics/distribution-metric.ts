import type { Distribution } from "@fairlead/hosting/distribution";

export interface LabelledDistribution {
  readonly labels: Readonly<Record<string, string>>;
  readonly values: Distribution;
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

interface DistributionOptions {
  readonly help: string;
  readonly labelNames?: readonly string[];
  readonly read: () => readonly LabelledDistribution[];
}

/** A histogram for prom-client's registry whose figures are counted elsewhere: its own would cost the hot path. */
export class DistributionMetric {
  readonly name: string;
  readonly help: string;
  readonly type = "histogram";
  readonly labelNames: readonly string[];
  readonly #read: () => readonly LabelledDistribution[];

  constructor(name: string, options: DistributionOptions) {
    this.name = name;
    this.help = options.help;
    this.labelNames = options.labelNames ?? [];
    this.#read = options.read;
  }

  async get(): Promise<Readonly<Record<string, unknown>>> {
    const values = this.#read().flatMap((distribution) => this.#samples(distribution));
    return { name: this.name, help: this.help, type: this.type, aggregator: "sum", values };
  }

  #samples({ labels, values }: LabelledDistribution): Sample[] {
    const bucket = `${this.name}_bucket`;
    const counts = values.cumulative();
    return [
      ...values.bounds.map((le, at) => ({ metricName: bucket, labels: { le, ...labels }, value: counts[at] ?? 0 })),
      { metricName: bucket, labels: { le: "+Inf", ...labels }, value: values.count },
      { metricName: `${this.name}_sum`, labels, value: values.sum },
      { metricName: `${this.name}_count`, labels, value: values.count },
    ];
  }
}
