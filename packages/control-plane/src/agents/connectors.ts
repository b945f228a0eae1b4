import type { Connector } from "@fairlead/protocol/agents";

/** What agents can be joined to. Pure. */
export const BUILT_IN_CONNECTORS: readonly Connector[] = [
  {
    slug: "http",
    description: "An endpoint of yours that takes what an agent has done, and the bearer token that it asks for.",
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

/** The connectors that there are: those that come with the platform, and the installation's own. */
export class ConnectorCatalogue {
  readonly #bySlug: ReadonlyMap<string, Connector>;

  /** @param own none has the slug of one that comes with the platform */
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

  /** Those that there are of these: one that the installation no longer has asks for nothing. */
  known(slugs: readonly string[]): readonly Connector[] {
    return slugs.flatMap((slug) => this.find(slug) ?? []);
  }
}
