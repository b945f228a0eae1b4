import { DIALECT_SPECS } from "@fairlead/dialects/dialect-specs";
import { DomainError } from "@fairlead/protocol/errors";
import type { ProviderCheck } from "@fairlead/protocol/providers";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { ProjectAccess } from "../../../access/auth/access.ts";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { readModelList } from "../../names/model-list.ts";
import { askUpstream, type SmallAnswer } from "../ask-upstream.ts";
import { MODELS_PATH } from "../model-discovery.ts";
import type { ProviderDirectory, UsableProvider } from "../provider-directory.ts";
import type { ProviderName } from "../provider-service.ts";
import { providerNotFound } from "../provider-service.ts";
import { judgeEmptyCall, judgeFailure, judgeList, type ProviderFinding } from "./provider-check.ts";

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

/** Tries one provider. */
export async function tryOut(provider: UsableProvider): Promise<ProviderFinding> {
  try {
    const { credentialPath, listsModels } = provider.facts;
    if (!listsModels) return judgeEmptyCall(provider, await askNothing(provider));
    const models = await ask(provider, MODELS_PATH);
    const credential = credentialPath === null ? null : await ask(provider, credentialPath);
    return judgeList(provider, { models, listed: readModelList(models.text), credential });
  } catch (error) {
    if (error instanceof DomainError) return judgeFailure(provider, error);
    throw error;
  }
}

function ask({ open }: UsableProvider, path: string): Promise<SmallAnswer> {
  return askUpstream(open(), { path, timeoutMs: ANSWER_MS });
}

/** A call without a model or a message: a good credential makes it wrong, a bad one refused, and nothing is generated. */
function askNothing({ open, facts }: UsableProvider): Promise<SmallAnswer> {
  const path = DIALECT_SPECS[facts.protocols[0] ?? "chat"].path;
  return askUpstream(open(), { path, body: "{}", timeoutMs: ANSWER_MS });
}
