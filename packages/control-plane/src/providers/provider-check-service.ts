import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { ProviderCheck } from "@fairlead/protocol/providers";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import { getFromUpstream, type SmallAnswer } from "./get-from-upstream.ts";
import { MODELS_PATH } from "./model-discovery.ts";
import { readModelList } from "./model-list.ts";
import { type Finding, judgeAnswer, judgeFailure } from "./provider-check.ts";
import type { ProviderDirectory, UsableProvider } from "./provider-directory.ts";
import type { ProviderName } from "./provider-service.ts";
import { providerNotFound } from "./provider-service.ts";

export interface ProviderCheckServiceDeps {
  readonly directory: ProviderDirectory;
  readonly access: ProjectAccess;
  readonly clock: Clock;
}

const ANSWER_MS = 15_000;

/** Tries a provider as calls would: the same connection, credential and guards; nothing is generated. */
export class ProviderCheckService {
  readonly #deps: ProviderCheckServiceDeps;

  constructor(deps: ProviderCheckServiceDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found, permission_denied */
  async check(caller: UserPrincipal, { projectId, name }: ProviderName): Promise<ProviderCheck> {
    const { access, directory, clock } = this.#deps;
    await access.require(caller, projectId, "provider.manage");
    const provider = (await directory.find(projectId)).providers.get(name);
    if (provider === undefined) throw providerNotFound();
    const begun = clock.monotonic();
    const finding = await tryOut(provider);
    return { ...finding, latencyMs: Math.round(clock.monotonic() - begun) };
  }
}

async function tryOut(provider: UsableProvider): Promise<Finding> {
  try {
    const models = await ask(provider, MODELS_PATH);
    const { credentialPath } = provider.facts;
    const credential = credentialPath === null ? null : await ask(provider, credentialPath);
    return judgeAnswer(provider, { models, listed: readModelList(models.text), credential });
  } catch (error) {
    if (error instanceof DomainError) return judgeFailure(provider, error);
    throw error;
  }
}

function ask({ open }: UsableProvider, path: string): Promise<SmallAnswer> {
  return getFromUpstream(open(), path, { timeoutMs: ANSWER_MS });
}
