import type { Connector } from "@fairlead/protocol/agents";

/** The connectors that agents can use. Pure. */
export const BUILT_IN_CONNECTORS: readonly Connector[] = [
  {
    slug: "http",
    description: "Your endpoint that receives the agent's results, and the bearer token it requires.",
    secrets: [
      { name: "HTTP_CONNECTOR_URL", as: "file" },
      { name: "HTTP_CONNECTOR_TOKEN", as: "file" },
    ],
  },
  {
    slug: "slack",
    description: "A Slack app in socket mode: its bot token (xoxb-…) and its app-level token (xapp-…).",
    secrets: [
      { name: "SLACK_BOT_TOKEN", as: "env" },
      { name: "SLACK_APP_TOKEN", as: "env" },
    ],
  },
];

/** Built-in connectors and those of the installation. */
export class ConnectorCatalogue {
  readonly #bySlug: ReadonlyMap<string, Connector>;

  /** @param own must not reuse the slug of a built-in connector */
  constructor(own: readonly Connector[]) {
    const all = [...BUILT_IN_CONNECTORS, ...own].toSorted((a, b) => (a.slug < b.slug ? -1 : 1));
    this.#bySlug = new Map(all.map((connector) => [connector.slug, connector]));
  }

  find(slug: string): Connector | null {
    return this.#bySlug.get(slug) ?? null;
  }

  /** By slug. */
  list(): readonly Connector[] {
    return [...this.#bySlug.values()];
  }

  /** Skips connectors that the installation no longer has. */
  known(slugs: readonly string[]): readonly Connector[] {
    return slugs.flatMap((slug) => this.find(slug) ?? []);
  }
}
