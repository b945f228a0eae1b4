import type { DomainError } from "@fairlead/protocol/errors";
import type { ProviderCheck } from "@fairlead/protocol/providers";
import { z } from "zod";
import { parseJson } from "./model-list.ts";
import type { ProviderFacts } from "./provider.ts";

/** What a provider's answers to a check mean, in words for people. Pure. */

export type Finding = Omit<ProviderCheck, "latencyMs">;

interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Answers {
  /** To the question for its models. */
  readonly models: Answer;
  /** Null for what is no list of models. */
  readonly listed: readonly string[] | null;
  /** To a question that only a good credential opens; null where none is known. */
  readonly credential: Answer | null;
}

interface Checked {
  readonly facts: Pick<ProviderFacts, "models" | "discovery">;
  /** It is never told, whatever the provider says. */
  readonly credential: string | null;
  /** There is one, which the server cannot open any more. */
  readonly credentialLost: boolean;
}

/** @param checked a provider that can be asked for its models. */
export function judgeList(checked: Checked, { models, listed, credential }: Answers): Finding {
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
    const message = "Something answers there, but with no list of models: is the base URL the one that SDKs take?";
    return { result: "not_understood", status, models: configured, message };
  }
  if (status >= 300 && status < 400) {
    const message = `It redirects (${status}), and redirects are not followed: set the base URL that it leads to.`;
    return { result: "refused", status, models: configured, message };
  }
  const message = `It answered with status ${status}.${wordsOf(models.text, checked.credential)}`;
  return { result: "refused", status, models: configured, message };
}

/** @param answer to a call that asks for nothing: 400 is a good sign. */
export function judgeEmptyCall(checked: Checked, answer: Answer): Finding {
  const models = checked.facts.models.map(({ name }) => name);
  const { status } = answer;
  if (isRefusal(status)) return refusedCredential(checked, answer);
  // A plain 404 is a wrong path; one in JSON says that the model is missing.
  if (status === 404 && parseJson(answer.text) === undefined) return withoutList(checked, status, models);
  if (status === 400 || status === 404 || status === 422) {
    const message = `${tookIt(checked)}; it has no list of models to ask for.`;
    return { result: "ok", status, models, message };
  }
  const message = `It answered with status ${status}.${wordsOf(answer.text, checked.credential)}`;
  return { result: "refused", status, models, message };
}

export function judgeFailure({ facts }: Pick<Checked, "facts">, { code, message, cause }: DomainError): Finding {
  const models = facts.models.map(({ name }) => name);
  const why = reasonOf(cause);
  return {
    result: code === "upstream_timeout" ? "timeout" : "unreachable",
    status: null,
    models,
    message: why === null ? message : `${message} ${why}`,
  };
}

function refusedCredential({ credential, credentialLost }: Checked, { status }: Answer): Finding {
  const message = credentialLost
    ? "The credential that is stored was sealed by another master key and cannot be opened: set it again."
    : credential === null
      ? `It wants a credential (${status}), and none is set.`
      : `It refused the credential (${status}): is it whole, and of this provider's account?`;
  return { result: "credential_refused", status, models: [], message };
}

function withoutList({ facts }: Checked, status: number, configured: readonly string[]): Finding {
  if (configured.length > 0 && !facts.discovery) {
    const message =
      "It is reached, and lists no models; those of the settings can be called. The credential was not tried.";
    return { result: "ok", status, models: [...configured], message };
  }
  const message = "It is reached, and knows no such path: is the base URL the one that SDKs take?";
  return { result: "not_found", status, models: [...configured], message };
}

function okMessage(checked: Checked, listed: readonly string[], configured: readonly string[]): string {
  const unknown = configured.filter((name) => !listed.includes(name));
  const { facts } = checked;
  const lists = `${tookIt(checked)} and lists ${listed.length} ${listed.length === 1 ? "model" : "models"}`;
  if (unknown.length > 0) return `${lists}, but not these of the settings: ${unknown.slice(0, 10).join(", ")}.`;
  return facts.discovery || configured.length > 0 ? `${lists}.` : `${lists}, none of which the settings name.`;
}

function tookIt({ credential }: Checked): string {
  return credential === null ? "It is reached without a credential" : "It took the credential";
}

function isRefusal(status: number): boolean {
  return status === 401 || status === 403;
}

const MAX_WORDS = 300;
const errorSchema = z.object({ error: z.union([z.string(), z.object({ message: z.string() })]) });

/** The provider's own words, without the credential if it says that again. */
function wordsOf(text: string, credential: string | null): string {
  const parsed = errorSchema.safeParse(parseJson(text));
  if (!parsed.success) return "";
  const { error } = parsed.data;
  const words = (typeof error === "string" ? error : error.message).replaceAll(/\p{Cc}+/gu, " ");
  const clean = credential === null ? words : words.replaceAll(credential, "[credential]");
  return ` It says: ${clean.slice(0, MAX_WORDS)}`;
}

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^(ENOTFOUND|EAI_AGAIN)$/, "Its name cannot be resolved."],
  [/^ECONNREFUSED$/, "Nothing listens there."],
  [/^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|EHOSTUNREACH|ENETUNREACH)$/, "No connection came about in time."],
  [/^(ECONNRESET|UND_ERR_SOCKET|EPIPE)$/, "It broke the connection off."],
  [/CERT|SELF_SIGNED|ISSUER|ALTNAME/, "Its certificate is not trusted here, or is for another name."],
  [/^(EPROTO|ERR_SSL)/, "It does not speak TLS as expected."],
];

/** Of the system's errors the code alone is told: their texts hold addresses. */
function reasonOf(cause: unknown): string | null {
  if (!(cause instanceof Error) || !("code" in cause)) return null;
  const code = String(cause.code);
  return REASONS.find(([pattern]) => pattern.test(code))?.[1] ?? null;
}
