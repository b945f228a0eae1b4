import { X509Certificate } from "node:crypto";
import { DomainError } from "@fairlead/protocol/errors";
import { fromJson } from "@fairlead/protocol/values/json-setting";
import { z } from "zod";
import { modelNameSchema, NODES_GROUP, providerNameSchema } from "../names/model-name.ts";
import { asText, parseBaseUrl } from "./base-url-form.ts";
import {
  credentialSchema,
  type PlatformProvider,
  presetSchema,
  providerModelSchema,
  providerSettingsSchema,
  providerSettingsShape,
} from "./provider.ts";
import { PROVIDER_PRESETS } from "./provider-presets.ts";

/** The settings `providers`. Pure: the caller reads files and variables. */

const flag = (description: string): z.ZodDefault<z.ZodPreprocess<z.ZodBoolean>> =>
  fromJson(z.boolean()).default(false).describe(description) as z.ZodDefault<z.ZodPreprocess<z.ZodBoolean>>;

const platformProvider = z
  .strictObject({
    name: providerNameSchema.refine(
      (name) => name !== NODES_GROUP,
      "is reserved for all nodes that serve the model; choose another name",
    ),
    preset: presetSchema.default(null),
    baseUrl: z.string().optional(),
    credentialFile: z.string().min(1).optional(),
    credentialVariable: z.string().min(1).optional(),
    ...providerSettingsShape,
  })
  .superRefine((item, context) => {
    if (item.credentialFile !== undefined && item.credentialVariable !== undefined) {
      const message = "set either credentialFile or credentialVariable, not both";
      context.addIssue({ code: "custom", path: ["credentialVariable"], message });
    }
    const problem = baseUrlProblem(item.baseUrl ?? presetBaseUrl(item.preset));
    if (problem !== null) context.addIssue({ code: "custom", path: ["baseUrl"], message: problem });
  });
type PlatformProviderInput = z.output<typeof platformProvider>;

export const providerSettings = z
  .strictObject({
    platform: fromJson(
      z
        .array(platformProvider)
        .refine(
          (items) => new Set(items.map(({ name }) => name)).size === items.length,
          "contains the same name twice",
        ),
    )
      .default([])
      .describe(
        "Providers that all projects can call: a list of `name`, `preset` (see docs/providers.md), `baseUrl`, `credentialFile` or " +
          "`credentialVariable` (the name of an environment variable), and the other fields in docs/providers.md. As an environment variable: JSON.",
      ),
    nodeModels: fromJson(z.array(providerModelSchema.extend({ name: modelNameSchema })))
      .default([])
      .describe(
        "Facts about models that nodes serve: a list of `name` (`*` for all others), `contextTokens`, `maxOutputTokens`, `prices`. " +
          "As an environment variable: JSON.",
      ),
    allowPrivate: flag(
      "Allow projects' own providers to use plain HTTP and private addresses. When false, users who manage a project's providers " +
        "cannot reach this server's internal network.",
    ),
    caFile: z
      .string()
      .min(1)
      .optional()
      .describe("PEM file of additional certificate authorities for providers' certificates."),
  })
  .prefault({});
type ProviderSettingsInput = z.output<typeof providerSettings>;

export interface ProvidersConfig extends Omit<ProviderSettingsInput, "platform" | "caFile"> {
  readonly platform: readonly PlatformProvider[];
  /** PEM, one each. */
  readonly authorities: readonly string[];
}

export interface Outside {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** @throws if it cannot be read */
  readonly readFile: (path: string) => string;
}

export interface Mistake {
  readonly path: string;
  readonly message: string;
}

/** Reads the referenced files and variables. @returns null after errors. */
export function completeProviders(
  input: ProviderSettingsInput,
  outside: Outside,
): { readonly config: ProvidersConfig | null; readonly mistakes: readonly Mistake[] } {
  const mistakes: Mistake[] = [];
  const attempt = <T>(path: string, read: () => T): T | null => {
    try {
      return read();
    } catch (error) {
      mistakes.push({ path, message: error instanceof Error ? error.message : String(error) });
      return null;
    }
  };
  const { caFile, platform: items, ...rest } = input;
  const platform = items.flatMap((item, index) => {
    const field = item.credentialFile === undefined ? "credentialVariable" : "credentialFile";
    const credential = attempt(`providers.platform[${index}].${field}`, () => credentialOf(item, outside));
    return toPlatformProvider(item, credential);
  });
  const authorities =
    caFile === undefined ? [] : attempt("providers.caFile", () => certificatesIn(outside.readFile(caFile)));
  if (mistakes.length > 0 || authorities === null) return { config: null, mistakes };
  return { config: { ...rest, platform, authorities }, mistakes };
}

function toPlatformProvider(item: PlatformProviderInput, credential: string | null): PlatformProvider {
  const { name, baseUrl, credentialFile: _file, credentialVariable: _variable, ...settings } = item;
  const url = parseBaseUrl(baseUrl ?? presetBaseUrl(item.preset) ?? "");
  return { name, baseUrl: asText(url), credential, settings: providerSettingsSchema.parse(settings) };
}

function credentialOf({ credentialFile, credentialVariable }: PlatformProviderInput, outside: Outside): string | null {
  if (credentialFile === undefined && credentialVariable === undefined) return null;
  const text = credentialFile === undefined ? outside.env[credentialVariable ?? ""] : outside.readFile(credentialFile);
  if (text === undefined || text.trim() === "") {
    throw new Error(credentialFile === undefined ? `${credentialVariable} is not set` : `${credentialFile} is empty`);
  }
  const parsed = credentialSchema.safeParse(text.trim());
  if (!parsed.success) throw new Error(`the credential ${parsed.error.issues[0]?.message ?? "cannot be used"}`);
  return parsed.data;
}

/** @throws if it contains none, or an invalid one */
function certificatesIn(pem: string): readonly string[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error("contains no certificate");
  for (const certificate of found) new X509Certificate(certificate);
  return found;
}

function presetBaseUrl(preset: PlatformProviderInput["preset"]): string | undefined {
  return preset === null ? undefined : (PROVIDER_PRESETS[preset].baseUrl ?? undefined);
}

function baseUrlProblem(text: string | undefined): string | null {
  if (text === undefined) return "is missing";
  try {
    parseBaseUrl(text);
    return null;
  } catch (error) {
    return error instanceof DomainError ? error.message.replace(/^`baseUrl`: |\.$/g, "") : "must be a URL";
  }
}
