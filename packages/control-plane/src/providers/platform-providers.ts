import type { PlatformProvider, ToldProvider } from "./provider.ts";

/** The platform's providers, by name. They stand fast while the server runs. */
export class PlatformProviders {
  readonly all: ReadonlyMap<string, PlatformProvider>;
  /** Unix milliseconds: since when they are served. */
  readonly since: number;

  constructor(providers: readonly PlatformProvider[], since: number) {
    this.all = new Map(providers.map((provider) => [provider.name, provider]));
    this.since = since;
  }

  /** What members of a project are told of them: that they are there, not where they lead. */
  told(): ToldProvider[] {
    return [...this.all.values()].map((provider) => this.#tell(provider));
  }

  find(name: string): ToldProvider | null {
    const provider = this.all.get(name);
    return provider === undefined ? null : this.#tell(provider);
  }

  #tell({ name, settings, credential }: PlatformProvider): ToldProvider {
    return {
      projectId: "",
      name,
      scope: "platform",
      baseUrl: "",
      // Header values are the operator's matter too.
      settings: { ...settings, headers: {} },
      hasCredential: credential !== null,
      createdAt: this.since,
      updatedAt: this.since,
    };
  }
}
