import type { PlatformProvider, ToldProvider } from "./provider.ts";

/** The platform's providers by name. Fixed while the server runs. */
export class PlatformProviders {
  readonly all: ReadonlyMap<string, PlatformProvider>;
  /** Unix milliseconds: served since. */
  readonly since: number;

  constructor(providers: readonly PlatformProvider[], since: number) {
    this.all = new Map(providers.map((provider) => [provider.name, provider]));
    this.since = since;
  }

  /** What project members see of them: names, but no addresses. */
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
      // Header values are visible to the operator only.
      settings: { ...settings, headers: {} },
      hasCredential: credential !== null,
      createdAt: this.since,
      updatedAt: this.since,
    };
  }
}
