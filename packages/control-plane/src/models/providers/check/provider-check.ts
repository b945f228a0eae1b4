import type { DomainError } from "@fairlead/protocol/errors";
import type { ProviderCheck } from "@fairlead/protocol/providers";
import { z } from "zod";
import { jsonIn } from "../../names/model-list.ts";
import type { ProviderFacts } from "../provider.ts";

/** Interprets a provider's responses to a check. Pure. */

export type ProviderFinding = Omit<ProviderCheck, "latencyMs">;

interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Answers {
  /** The response with the list of models. */
  readonly models: Answer;
  /** Null if it is not a list of models. */
  readonly listed: readonly string[] | null;
  /** The response of a path that requires a valid credential; null if there is no such path. */
  readonly credential: Answer | null;
}

interface Checked {
  readonly facts: Pick<ProviderFacts, "models" | "discovery">;
  /** Never included in a message, even if the provider repeats it. */
  readonly credential: string | null;
  /** A stored credential that cannot be decrypted. */
  readonly credentialLost: boolean;
}

/** @param checked a provider with a list of models. */
export function judgeList(checked: Checked, { models, listed, credential }: Answers): ProviderFinding {
  const refused = [credential, models].find((answer) => answer !== null && isRefusal(answer.status));
  if (refused) return refusedCredential(checked, refused);
  const configured = checked.facts.models.map(({ name }) => name);
  const { status } = models;
  if (status === 200 && listed !== null) {
    const names = checked.facts.discovery ? [...new Set([...configured, ...listed])] : configured;
    return { result: "ok", status, models: names, message: okMessage(checked, listed, configured) };
  }
  if (status === 404 || status === 405) return withoutList(checked, status, configured);
  if (status >= 200 && status < 300) {
    const message =
      "The provider responds, but without a list of models. Check that the base URL is the one that SDKs use.";
    return { result: "not_understood", status, models: configured, message };
  }
  if (status >= 300 && status < 400) {
    const message = `The provider redirects (${status}), and redirects are not followed. Set the base URL to the target of the redirect.`;
    return { result: "refused", status, models: configured, message };
  }
  const message = `The provider returned status ${status}.${wordsOf(models.text, checked.credential)}`;
  return { result: "refused", status, models: configured, message };
}

/** @param answer to a call without input: 400 means success. */
export function judgeEmptyCall(checked: Checked, answer: Answer): ProviderFinding {
  const models = checked.facts.models.map(({ name }) => name);
  const { status } = answer;
  if (isRefusal(status)) return refusedCredential(checked, answer);
  // A plain 404 is a wrong path; in JSON it means an unknown model.
  if (status === 404 && jsonIn(answer.text) === undefined) return withoutList(checked, status, models);
  if (status === 400 || status === 404 || status === 422) {
    const message = `${tookIt(checked)}, but has no list of models.`;
    return { result: "ok", status, models, message };
  }
  const message = `The provider returned status ${status}.${wordsOf(answer.text, checked.credential)}`;
  return { result: "refused", status, models, message };
}

export function judgeFailure({ facts }: Pick<Checked, "facts">, { code, message }: DomainError): ProviderFinding {
  const models = facts.models.map(({ name }) => name);
  return {
    result: code === "upstream_timeout" ? "timeout" : "unreachable",
    status: null,
    models,
    message: asSentence(message),
  };
}

function asSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

function refusedCredential({ credential, credentialLost }: Checked, { status }: Answer): ProviderFinding {
  const message = credentialLost
    ? "The stored credential was sealed with another master key and cannot be decrypted. Set it again."
    : credential === null
      ? `The provider requires a credential (${status}), but none is set.`
      : `The provider rejected the credential (${status}). Check that it is complete and belongs to the right account.`;
  return { result: "credential_refused", status, models: [], message };
}

function withoutList({ facts }: Checked, status: number, configured: readonly string[]): ProviderFinding {
  if (configured.length > 0 && !facts.discovery) {
    const message =
      "The provider responds, but has no list of models. The models in the settings can be called. The credential was not checked.";
    return { result: "ok", status, models: [...configured], message };
  }
  const message =
    "The provider responds, but the path does not exist. Check that the base URL is the one that SDKs use.";
  return { result: "not_found", status, models: [...configured], message };
}

function okMessage(checked: Checked, listed: readonly string[], configured: readonly string[]): string {
  const unknown = configured.filter((name) => !listed.includes(name));
  const { facts } = checked;
  const lists = `${tookIt(checked)} and lists ${listed.length} ${listed.length === 1 ? "model" : "models"}`;
  if (unknown.length > 0)
    return `${lists}, but not these models from the settings: ${unknown.slice(0, 10).join(", ")}.`;
  return facts.discovery || configured.length > 0 ? `${lists}.` : `${lists}, none of which is in the settings.`;
}

function tookIt({ credential }: Checked): string {
  return credential === null
    ? "The provider accepts requests without a credential"
    : "The provider accepted the credential";
}

function isRefusal(status: number): boolean {
  return status === 401 || status === 403;
}

const MAX_WORDS = 300;
const errorSchema = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) });

/** The provider's message, with the credential removed. */
function wordsOf(text: string, credential: string | null): string {
  const parsed = errorSchema.safeParse(jsonIn(text));
  if (!parsed.success) return "";
  const { error } = parsed.data;
  const words = (typeof error === "string" ? error : error.message).replaceAll(/\p{Cc}+/gu, " ");
  const clean = credential === null ? words : words.replaceAll(credential, "[credential]");
  return ` Response: ${clean.slice(0, MAX_WORDS)}`;
}
