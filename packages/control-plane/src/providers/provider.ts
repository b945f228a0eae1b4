import { rfc3339 } from "@fairlead/protocol/clock";
import { PROVIDER_PRESET_NAMES, type Provider } from "@fairlead/protocol/providers";
import { z } from "zod";
import type { AuditResource } from "../audit/audit.ts";
import { pricesSchema } from "../billing/prices.ts";
import type { ChatQuirks } from "../inference/bridge/bridge-call.ts";
import type { Dialect } from "../inference/dialect.ts";
import { upstreamModelSchema } from "./model-name.ts";
import { forwardHeadersSchema, headerNameSchema, headersSchema } from "./provider-headers.ts";
import { BEARER, type CredentialForm, PROVIDER_PRESETS } from "./provider-presets.ts";

/** A provider: its settings, what a preset fills in, and how it is told. Pure. */

const tokens = z.number().int().min(1).max(1_000_000_000);
const seconds = (most: number): z.ZodOptional<z.ZodNumber> => z.number().int().min(1).max(most).optional();

const MAX_MODELS = 500;

export const providerModelSchema = z.strictObject({
  name: upstreamModelSchema.describe("As the provider calls it."),
  contextTokens: tokens.optional().describe("How many tokens a call may hold, input and output together."),
  maxOutputTokens: tokens.optional().describe("How many tokens one answer may have."),
  prices: pricesSchema.optional(),
});
export type ProviderModel = z.output<typeof providerModelSchema>;

/** What anybody may set of a provider, in the server's settings and over the API; what is left out, the preset says. */
export const providerSettingsShape = {
  protocols: z
    .array(z.enum(["chat", "responses"]))
    .min(1)
    .max(2)
    .refine((items) => new Set(items).size === items.length, "holds the same twice")
    .optional()
    .describe("Wire formats that it speaks; calls in the other are converted."),
  credentialHeader: headerNameSchema
    .optional()
    .describe("The header that carries the credential: as `Bearer` in `authorization`, bare in any other."),
  headers: headersSchema
    .optional()
    .describe(
      "Headers that are sent with every call. Everybody in the project may read them: a credential is none of them.",
    ),
  forwardHeaders: forwardHeadersSchema
    .optional()
    .describe("Headers of a caller that go on to this provider, besides `accept` and `traceparent`: `[openai-beta]`."),
  timeouts: z
    .strictObject({
      connectSeconds: seconds(60),
      firstByteSeconds: seconds(3600),
      idleSeconds: seconds(3600),
      totalSeconds: seconds(86_400),
    })
    .optional()
    .describe("How long it may take to connect, to begin its answer, to be silent in it, and in all."),
  discovery: z
    .boolean()
    .optional()
    .describe("Ask it for its models, besides those in `models`. Default: as the preset says, if `models` is empty."),
  models: z
    .array(providerModelSchema)
    .max(MAX_MODELS)
    .refine((items) => new Set(items.map(({ name }) => name)).size === items.length, "holds the same name twice")
    .optional()
    .describe(
      "Its models with what is known of them. Where any are named, and without discovery, no others can be called.",
    ),
  quirks: z
    .strictObject({
      outputLimit: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
      developerRole: z.boolean().optional(),
      thinkingField: z.enum(["reasoning_content", "reasoning", "none"]).optional(),
    })
    .optional()
    .describe("Where its chat dialect differs, for converted calls."),
};

export const presetSchema = z
  .enum(PROVIDER_PRESET_NAMES)
  .nullable()
  .describe("A well-known provider: fills in what is left out. docs/providers.md lists them.");

export const providerSettingsSchema = z.strictObject({ preset: presetSchema, ...providerSettingsShape });
export type ProviderSettings = z.output<typeof providerSettingsSchema>;

/** It becomes a header's value. */
export const credentialSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,8192}$/, "must be 1 to 8192 printable ASCII characters without a space");

/** A project's own provider as the services hold it. Times are Unix milliseconds. */
export interface ProviderRecord {
  readonly projectId: string;
  readonly name: string;
  readonly userId: string;
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly settings: ProviderSettings;
  /** Null: none. */
  readonly sealedCredential: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A provider of the whole platform, from the server's settings. */
export interface PlatformProvider {
  readonly name: string;
  readonly baseUrl: string;
  readonly settings: ProviderSettings;
  readonly credential: string | null;
}

export interface ProviderTimeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

/** Settings with everything filled in. */
export interface ProviderFacts {
  readonly protocols: readonly Dialect[];
  readonly credential: CredentialForm;
  /** As the preset's. */
  readonly credentialPath: string | null;
  /** Whether it can be asked for its models, whatever `discovery` says. */
  readonly listsModels: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly forwardHeaders: readonly string[];
  readonly timeouts: ProviderTimeouts;
  readonly discovery: boolean;
  readonly models: readonly ProviderModel[];
  readonly quirks: ChatQuirks;
}

/** design §8 */
export const DEFAULT_TIMEOUTS: ProviderTimeouts = {
  connectMs: 5000,
  firstByteMs: 120_000,
  idleMs: 120_000,
  totalMs: 1_800_000,
};

export function factsOf(settings: ProviderSettings): ProviderFacts {
  const preset = settings.preset === null ? null : PROVIDER_PRESETS[settings.preset];
  const { models = [], timeouts = {}, credentialHeader } = settings;
  return {
    protocols: settings.protocols ?? preset?.protocols ?? ["chat"],
    credential: credentialHeader === undefined ? (preset?.credential ?? BEARER) : formOf(credentialHeader),
    credentialPath: preset?.credentialPath ?? null,
    listsModels: preset?.discovery ?? true,
    headers: { ...preset?.headers, ...settings.headers },
    forwardHeaders: settings.forwardHeaders ?? [],
    timeouts: {
      connectMs: inMs(timeouts.connectSeconds) ?? DEFAULT_TIMEOUTS.connectMs,
      firstByteMs: inMs(timeouts.firstByteSeconds) ?? DEFAULT_TIMEOUTS.firstByteMs,
      idleMs: inMs(timeouts.idleSeconds) ?? DEFAULT_TIMEOUTS.idleMs,
      totalMs: inMs(timeouts.totalSeconds) ?? DEFAULT_TIMEOUTS.totalMs,
    },
    discovery: settings.discovery ?? (models.length === 0 && (preset?.discovery ?? true)),
    models,
    quirks: quirksOf(settings.quirks ?? {}, preset?.quirks ?? {}),
  };
}

export interface ToldProvider {
  readonly projectId: string;
  readonly name: string;
  readonly scope: "project" | "platform";
  readonly baseUrl: string;
  readonly settings: ProviderSettings;
  readonly hasCredential: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export function toldProvider({ sealedCredential, ...record }: ProviderRecord): ToldProvider {
  return { ...record, scope: "project", hasCredential: sealedCredential !== null };
}

/** As the API tells it: everything filled in, and never the credential. */
export function toProvider({ settings, ...told }: ToldProvider): Provider {
  const { credential, headers, forwardHeaders, timeouts, quirks, ...facts } = factsOf(settings);
  return {
    projectId: told.projectId,
    name: told.name,
    scope: told.scope,
    preset: settings.preset,
    baseUrl: told.baseUrl,
    protocols: [...facts.protocols],
    hasCredential: told.hasCredential,
    credentialHeader: credential.header,
    headers,
    forwardHeaders: [...forwardHeaders],
    timeouts: {
      connectSeconds: timeouts.connectMs / 1000,
      firstByteSeconds: timeouts.firstByteMs / 1000,
      idleSeconds: timeouts.idleMs / 1000,
      totalSeconds: timeouts.totalMs / 1000,
    },
    discovery: facts.discovery,
    models: [...facts.models],
    quirks: {
      outputLimit: quirks.outputLimit ?? "max_tokens",
      developerRole: quirks.developerRole ?? false,
      thinkingField: quirks.thinkingField ?? "none",
    },
    createdAt: rfc3339(told.createdAt),
    updatedAt: rfc3339(told.updatedAt),
  };
}

/** The provider as the audit log names it. */
export function providerResource(name: string): AuditResource {
  return { type: "provider", id: name };
}

function formOf(header: string): CredentialForm {
  return header === BEARER.header ? BEARER : { header, scheme: "" };
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

function quirksOf(own: NonNullable<ProviderSettings["quirks"]>, preset: ChatQuirks): ChatQuirks {
  const { outputLimit = preset.outputLimit, developerRole = preset.developerRole } = own;
  const { thinkingField = preset.thinkingField } = own;
  return {
    ...(outputLimit === undefined ? {} : { outputLimit }),
    ...(developerRole === undefined ? {} : { developerRole }),
    ...(thinkingField === undefined || thinkingField === "none" ? {} : { thinkingField }),
  };
}
