import type { Dialect } from "@fairlead/dialects/calls/dialect";
import type { ChatQuirks } from "@fairlead/dialects/convert/bridge-call";
import { pricesSchema } from "@fairlead/inference/ports/prices";
import { DIALECTS, PROVIDER_PRESET_NAMES, type Provider } from "@fairlead/protocol/providers";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import type { AuditResource } from "../../access/audit/audit.ts";
import { upstreamModelSchema } from "../names/model-name.ts";
import { forwardHeadersSchema, headerNameSchema, headersSchema } from "./provider-headers.ts";
import { BEARER, type CredentialForm, PROVIDER_PRESETS } from "./provider-presets.ts";

/** Providers: settings, preset defaults and API form. Pure. */

const tokens = z.number().int().min(1).max(1_000_000_000);
const seconds = (most: number): z.ZodOptional<z.ZodNumber> => z.number().int().min(1).max(most).optional();

const MAX_MODELS = 500;

export const providerModelSchema = z.strictObject({
  name: upstreamModelSchema.describe("The provider's name for the model."),
  contextTokens: tokens
    .optional()
    .describe("Maximum number of input and output tokens of a call. Limits the amount reserved for input."),
  maxOutputTokens: tokens
    .optional()
    .describe(
      "Maximum number of output tokens of a response. Limits the amount reserved for non-streaming calls; 131,072 if neither this nor `contextTokens` is set.",
    ),
  prices: pricesSchema.optional(),
});
export type ProviderModel = z.output<typeof providerModelSchema>;

/** Settings of a provider in the server's config and the API; the preset supplies defaults. */
export const providerSettingsShape = {
  protocols: z
    .array(z.enum(DIALECTS))
    .min(1)
    .max(DIALECTS.length)
    .refine((items) => new Set(items).size === items.length, "contains the same value twice")
    .optional()
    .describe("The dialects that it supports. Calls in the other dialect are converted."),
  credentialHeader: headerNameSchema
    .optional()
    .describe("The header for the credential: as `Bearer` in `authorization`, otherwise without a scheme."),
  headers: headersSchema
    .optional()
    .describe(
      "Headers to send with every call. They are visible to all members of the project and must not contain credentials.",
    ),
  forwardHeaders: forwardHeadersSchema
    .optional()
    .describe(
      "Client headers to pass through to this provider, in addition to `accept` and `traceparent`: `[openai-beta]`.",
    ),
  timeouts: z
    .strictObject({
      connectSeconds: seconds(60),
      firstByteSeconds: seconds(3600),
      idleSeconds: seconds(3600),
      totalSeconds: seconds(86_400),
    })
    .optional()
    .describe("Timeouts for connecting, for the first byte, without data, and in total."),
  discovery: z
    .boolean()
    .optional()
    .describe(
      "Read the models from the provider's list, in addition to those in `models`. Default: the preset's value if `models` is empty.",
    ),
  models: z
    .array(providerModelSchema)
    .max(MAX_MODELS)
    .refine((items) => new Set(items.map(({ name }) => name)).size === items.length, "contains the same name twice")
    .optional()
    .describe("Its models and their properties. If any are listed and discovery is off, no others can be called."),
  quirks: z
    .strictObject({
      outputLimit: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
      developerRole: z.boolean().optional(),
      thinkingField: z.enum(["reasoning_content", "reasoning", "none"]).optional(),
    })
    .optional()
    .describe("Differences of its chat dialect, for converted calls."),
};

export const presetSchema = z
  .enum(PROVIDER_PRESET_NAMES)
  .nullable()
  .describe("A well-known provider, which supplies defaults. See docs/providers.md for a list.");

export const providerSettingsSchema = z.strictObject({ preset: presetSchema, ...providerSettingsShape });
export type ProviderSettings = z.output<typeof providerSettingsSchema>;

/** Must be valid in a header. */
export const credentialSchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,8192}$/, "must be 1 to 8192 printable ASCII characters without spaces");

/** A project's own provider as the services use it. Times are Unix milliseconds. */
export interface ProviderRecord {
  readonly projectId: string;
  readonly name: string;
  readonly userId: string;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly settings: ProviderSettings;
  /** Null: none. */
  readonly sealedCredential: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A provider of the platform, from the server's settings. */
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

/** Settings with all defaults. */
export interface ProviderFacts {
  readonly protocols: readonly Dialect[];
  readonly credential: CredentialForm;
  /** From the preset. */
  readonly credentialPath: string | null;
  /** Whether its models can be listed, regardless of `discovery`. */
  readonly listsModels: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly forwardHeaders: readonly string[];
  readonly timeouts: ProviderTimeouts;
  readonly discovery: boolean;
  readonly models: readonly ProviderModel[];
  readonly quirks: ChatQuirks;
}

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

/** The API form, with all defaults and without the credential. */
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

/** The name in the audit log. */
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
