import { X509Certificate } from "node:crypto";
import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import { fromJson } from "../json-setting.ts";
import { asText, parseBaseUrl } from "./base-url-form.ts";
import { modelNameSchema, NODES_GROUP, providerNameSchema } from "./model-name.ts";
import {
  credentialSchema,
  type PlatformProvider,
  presetSchema,
  providerModelSchema,
  providerSettingsSchema,
  providerSettingsShape,
} from "./provider.ts";
import { PROVIDER_PRESETS } from "./provider-presets.ts";

/** The settings `providers`. Pure: files and variables are read by whoever hands them over. */

const flag = (description: string): z.ZodDefault<z.ZodPreprocess<z.ZodBoolean>> =>
  fromJson(z.boolean()).default(false).describe(description) as z.ZodDefault<z.ZodPreprocess<z.ZodBoolean>>;

const platformProvider = z
  .strictObject({
    name: providerNameSchema.refine(
      (name) => name !== NODES_GROUP,
      "means every node that has the model; take another",
    ),
    preset: presetSchema.default(null),
    baseUrl: z.string().optional(),
    credentialFile: z.string().min(1).optional(),
    credentialVariable: z.string().min(1).optional(),
    ...providerSettingsShape,
  })
  .superRefine((item, context) => {
    if (item.credentialFile !== undefined && item.credentialVariable !== undefined) {
      const message = "stands beside credentialFile; give one of them";
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
        .refine((items) => new Set(items.map(({ name }) => name)).size === items.length, "holds the same name twice"),
    )
      .default([])
      .describe(
        "Providers that every project may call: a list of `name`, `preset` (docs/providers.md), `baseUrl`, `credentialFile` or " +
          "`credentialVariable` (the name of a variable), and what else docs/providers.md lists. In the variable: JSON.",
      ),
    nodeModels: fromJson(z.array(providerModelSchema.extend({ name: modelNameSchema })))
      .default([])
      .describe(
        "What is known of models that nodes serve: a list of `name` (`*`: every other), `contextTokens`, `maxOutputTokens`, `prices`. " +
          "In the variable: JSON.",
      ),
    allowPrivate: flag(
      "Whether projects' own providers may be plain http and lie inside private networks. Off, whoever may manage a project's providers " +
        "cannot reach into this server's own network.",
    ),
    caFile: z
      .string()
      .min(1)
      .optional()
      .describe("PEM file of authorities, besides the system's, that providers' certificates may be signed by."),
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
  /** @throws where it cannot be read */
  readonly readFile: (path: string) => string;
}

export interface Mistake {
  readonly path: string;
  readonly message: string;
}

/** Reads what the settings refer to. @returns null beside mistakes. */
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

/** @throws where it holds none, or one that is broken */
function certificatesIn(pem: string): readonly string[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error("holds no certificate");
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
