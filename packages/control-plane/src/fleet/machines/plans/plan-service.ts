import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import { type MachinePlan, type MachineProvider, ProviderRefusal } from "../machine-provider.ts";
import { providerRefused } from "../provider-refused.ts";
import type { PlanCatalogue } from "./plan.ts";

export interface PlanServiceDeps {
  readonly providers: ReadonlyMap<string, MachineProvider>;
  readonly catalogues: readonly PlanCatalogue[];
  readonly clock: Clock;
}

/** The plans of one provider, and when they were fetched. */
export interface KnownPlans extends PlanCatalogue {
  readonly from: "catalogue" | "provider";
}

/** Cache lifetime of plans fetched without a token. */
const FRESH_MS = 5 * 60_000;

/** Available machine types. Plans fetched with a user's token are cached for everyone, because prices are the same. */
export class PlanService {
  readonly #deps: PlanServiceDeps;
  readonly #known = new Map<string, KnownPlans>();

  constructor(deps: PlanServiceDeps) {
    this.#deps = deps;
    for (const catalogue of deps.catalogues) this.#known.set(catalogue.provider, { ...catalogue, from: "catalogue" });
  }

  /** For all providers of this server; those that do not respond are skipped. */
  async list(): Promise<readonly KnownPlans[]> {
    const lists = await Promise.all([...this.#deps.providers.values()].map((provider) => this.#plansOf(provider)));
    return lists.filter((known) => known !== null);
  }

  /** Fetches the plans. @throws DomainError invalid_request, provider_token_invalid, unavailable */
  async refresh(name: string, token: string | undefined): Promise<KnownPlans> {
    const provider = this.provider(name, "provider");
    requireToken(provider, token);
    try {
      return this.#keep(name, await provider.plans(token ?? null));
    } catch (error) {
      throw error instanceof ProviderRefusal ? providerRefused(name, error) : error;
    }
  }

  /** From current data. @throws DomainError as `refresh` */
  async find(
    { provider, type }: { readonly provider: string; readonly type: string },
    token: string | undefined,
  ): Promise<MachinePlan> {
    const { plans } = await this.refresh(provider, token);
    const plan = plans.find((each) => each.type === type);
    if (plan !== undefined) return plan;
    const offered = plans.map((each) => each.type).join(", ");
    const message = `\`planId\`: ${provider} does not offer the machine type "${type}" at the moment. Available: ${offered}.`;
    throw new DomainError("invalid_request", message, { param: "planId" });
  }

  /** @param param the field with the name. @throws DomainError invalid_request */
  provider(name: string, param: string): MachineProvider {
    const provider = this.#deps.providers.get(name);
    if (provider !== undefined) return provider;
    const offered = [...this.#deps.providers.keys()].join(", ");
    throw new DomainError(
      "invalid_request",
      `\`${param}\`: this server does not offer machines of "${name}". Available: ${offered}.`,
      {
        param,
      },
    );
  }

  async #plansOf(provider: MachineProvider): Promise<KnownPlans | null> {
    const known = this.#known.get(provider.name) ?? null;
    if (provider.needsToken || (known !== null && this.#deps.clock.now() - known.at < FRESH_MS)) return known;
    try {
      return this.#keep(provider.name, await provider.plans(null));
    } catch (error) {
      if (error instanceof ProviderRefusal) return known;
      throw error;
    }
  }

  #keep(provider: string, plans: readonly MachinePlan[]): KnownPlans {
    const known: KnownPlans = { provider, plans, at: this.#deps.clock.now(), from: "provider" };
    this.#known.set(provider, known);
    return known;
  }
}

/** @throws DomainError invalid_request */
export function requireToken({ name, needsToken }: MachineProvider, token: string | undefined): void {
  if (needsToken === (token !== undefined)) return;
  const message = needsToken
    ? `\`providerToken\`: ${name} requires your API token with read and write access.`
    : `\`providerToken\`: ${name} does not use a token. Omit it.`;
  throw new DomainError("invalid_request", message, { param: "providerToken" });
}
