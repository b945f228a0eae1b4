import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type ServiceManager, serviceManagerOf } from "@fairlead/protocol/values/service-manager";
import { LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { fieldPath } from "../../http/requests/validation.ts";
import { completeProviders, type ProvidersConfig } from "../../models/providers/provider-config.ts";
import { completeProxy, type ProxyConfig } from "../outgoing/proxy-settings.ts";
import { type ConfigInput, configSchema, listSettings, type Setting } from "./config-schema.ts";

/** Merges YAML and environment into one frozen value, reporting all errors together. */
export interface Config extends Omit<ConfigInput, "server" | "masterKeyFile" | "builds" | "providers" | "proxy"> {
  /** Absolute. */
  readonly dataDir: string;
  readonly masterKeyFile: string;
  readonly server: ServerConfig;
  readonly builds: { readonly dir: string };
  /** From systemd, not a setting. */
  readonly serviceManager: ServiceManager;
  readonly providers: ProvidersConfig;
  readonly proxy: ProxyConfig;
}

export interface ServerConfig extends Omit<ConfigInput["server"], "publicUrl" | "modelsUrl" | "lameDuckSeconds"> {
  /** Null: derived from the host and the assigned port. */
  readonly publicUrl: string | null;
  readonly modelsUrl: string | null;
  readonly lameDuckSeconds: number;
}

export interface ConfigMistake {
  /** The setting's path, the variable's name, or a place in the file. */
  readonly path: string;
  readonly message: string;
}

export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly mistakes: readonly ConfigMistake[];

  constructor(mistakes: readonly ConfigMistake[]) {
    super(mistakes.map(({ path, message }) => `${path}: ${message}`).join("\n"));
    this.mistakes = mistakes;
  }
}

export interface ConfigSource {
  /** A YAML file. */
  readonly file?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The environment takes precedence over the file. @throws ConfigError */
export function loadConfig(source: ConfigSource): Config {
  const file = source.file === undefined ? { value: {}, mistakes: [] } : readFile(source.file);
  const settings = listSettings();
  const given = settings.filter((setting) => isGiven(source.env[setting.env]));
  const mistakes = [...file.mistakes, ...unknownVariables(source.env, settings)];
  const input = given.reduce<unknown>(
    (value, setting) => override(value, setting, source.env[setting.env] ?? ""),
    file.value,
  );
  const parsed = configSchema.safeParse(input);
  if (!parsed.success) mistakes.push(...explain(parsed.error, given));
  if (!parsed.success) throw new ConfigError(mistakes);
  const providers = completeProviders(parsed.data.providers, {
    env: source.env,
    readFile: (path) => readFileSync(path, "utf8"),
  });
  const proxy = completeProxy(parsed.data.proxy, source.env);
  mistakes.push(...providers.mistakes, ...proxy.mistakes);
  if (providers.config === null || proxy.config === null || mistakes.length > 0) throw new ConfigError(mistakes);
  const serviceManager = serviceManagerOf(source.env, process.pid);
  const outside = { providers: providers.config, proxy: proxy.config };
  return deepFreeze({ ...complete(parsed.data, serviceManager), ...outside, serviceManager });
}

/** Under systemd, load balancers need time to react; a program in a terminal should exit immediately. */
const SERVICE_LAME_DUCK_SECONDS = 10;

function complete(input: ConfigInput, manager: ServiceManager): Omit<Config, "providers" | "proxy" | "serviceManager"> {
  const dataDir = resolve(input.dataDir);
  const { publicUrl = null, modelsUrl = null } = input.server;
  const { lameDuckSeconds = manager.listens ? SERVICE_LAME_DUCK_SECONDS : 0 } = input.server;
  return {
    ...input,
    dataDir,
    masterKeyFile: input.masterKeyFile === undefined ? join(dataDir, "master.key") : resolve(input.masterKeyFile),
    server: { ...input.server, publicUrl, modelsUrl, lameDuckSeconds },
    builds: { dir: input.builds.dir === undefined ? join(dataDir, "daemon-builds") : resolve(input.builds.dir) },
  };
}

function readFile(file: string): { readonly value: unknown; readonly mistakes: readonly ConfigMistake[] } {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    return { value: {}, mistakes: [{ path: file, message: `cannot be read: ${wordsOf(error)}` }] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const mistakes = document.errors.map((error) => {
    const { line, col } = lines.linePos(error.pos[0]);
    return { path: `${file}:${line}:${col}`, message: error.message };
  });
  // An empty file, or only comments, parses to null.
  return { value: mistakes.length > 0 ? {} : (document.toJS() ?? {}), mistakes };
}

function isGiven(value: string | undefined): boolean {
  return value !== undefined && value !== "";
}

/** Returns the value with one setting replaced. A conflicting non-map is left for the schema to reject. */
function override(value: unknown, setting: Setting, text: string): unknown {
  const leaf = setting.isNumber && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  return setIn(value, setting.path, leaf);
}

function setIn(value: unknown, path: readonly string[], leaf: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return leaf;
  if (value !== undefined && value !== null && !isMap(value)) return value;
  const map: Record<string, unknown> = { ...value };
  return { ...map, [first]: setIn(map[first], rest, leaf) };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Misspelt variables must be reported. Names outside our sections belong to other programs (FAIRLEAD_TOKEN). */
function unknownVariables(env: ConfigSource["env"], settings: readonly Setting[]): readonly ConfigMistake[] {
  const known = new Map(settings.map((setting) => [bare(setting.env), setting.env]));
  const sections = new Set(settings.map((setting) => `${setting.env.split("_", 2).join("_")}_`));
  return Object.keys(env).flatMap((name) => {
    const meant = known.get(bare(name));
    if (meant === name) return [];
    if (meant !== undefined) return [{ path: name, message: `unknown setting; did you mean ${meant}?` }];
    return [...sections].some((section) => name.startsWith(section))
      ? [{ path: name, message: "unknown setting" }]
      : [];
  });
}

function bare(name: string): string {
  return name.replaceAll("_", "");
}

function explain(error: z.core.$ZodError, given: readonly Setting[]): readonly ConfigMistake[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({ path: fieldPath([...issue.path, key]), message: "unknown setting" }));
    }
    const path = fieldPath(issue.path);
    const variable = given.find((setting) => fieldPath(setting.path) === path)?.env;
    return [{ path: variable ?? (path === "" ? "(the whole file)" : path), message: issue.message }];
  });
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function deepFreeze<T>(value: T): T {
  if (isMap(value)) for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
