import { PROVIDER_PRESET_NAMES } from "@fairlead/protocol/providers";
import type { z } from "zod";
import { DEFAULT_TIMEOUTS, providerModelSchema, providerSettingsShape } from "./provider.ts";
import { PROVIDER_PRESETS } from "./provider-presets.ts";

/** The text of `docs/providers.md`; a test compares the two. */
export function providerReference(): string {
  return [
    "# Providers",
    "",
    "Generated from `packages/control-plane/src/providers`. A **provider** is an API that calls may go to besides the project's nodes: the part of",
    "a model's name before the first `/`. The platform's come from the server's settings, and every project may call them; a project's own are made",
    "over the API (`/v1/projects/{id}/providers`) or by `fairlead provider`, by its owners and admins. Why it is so:",
    "[decision 0018](decisions/0018-providers.md).",
    "",
    "```sh",
    "# a project's own; the credential is read from a file or standard input, never from the command line",
    "fairlead provider create openai --preset openai --credential-file openai.key",
    "fairlead provider check openai",
    "fairlead alias set fast nodes/qwen3-8b openai/gpt-5.1-mini",
    "```",
    "",
    "```yaml",
    "# the platform's, in the server's settings",
    "providers:",
    "  platform:",
    "    - name: openai",
    "      preset: openai",
    "      credentialFile: /etc/fairlead/openai.key",
    "      models:",
    "        - name: gpt-5.1-mini",
    "          contextTokens: 400000",
    "          prices: { input: 250000000, cachedInput: 25000000, output: 2000000000 } # nano-dollars for a million tokens",
    "      discovery: true",
    "    - name: rack",
    "      preset: vllm",
    "      baseUrl: http://10.0.0.5:8000/v1",
    "  nodeModels:",
    '    - { name: "*", prices: { input: 0, output: 0 } }',
    "inference:",
    "  defaultModel: openai/gpt-5.1-mini",
    "```",
    "",
    "`nodeModels` tells of the models that nodes' engines serve: by name, and `*` of every other. With `billing.mode: prepaid` one without prices is 503",
    "`not_configured`, never free by accident; a price of 0 makes it so on purpose.",
    "",
    ...names(),
    ...settings(),
    ...safety(),
    "## Presets",
    "",
    "What a preset fills in; what is set wins. *Limit*: the field that limits the answer in converted calls. *Developer*: whether the role",
    "`developer` is known. *Thinking*: the field in which earlier thinking is taken back.",
    "",
    "| preset | base URL | speaks | credential | models | limit | developer | thinking | source |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ...PROVIDER_PRESET_NAMES.map(presetRow),
    "",
  ].join("\n");
}

function names(): string[] {
  return [
    "## Names",
    "",
    "- `<provider>/<model>`: the first `/` splits; the rest is the model's name as the provider knows it, and may hold more slashes.",
    "- `<node's identifier>/<model>`: that node and no other.",
    "- `nodes/<model>`: any node of the project that serves the model; another one is tried where one fails.",
    "- An alias, without a slash: an ordered list of the above. The next target is tried where one cannot answer, before its first byte.",
    "- None: the project's default model (`PATCH /v1/projects/{id}`, `defaultModel`), else the server's (`inference.defaultModel`), else 400.",
    "",
    "Providers, aliases and nodes' identifiers share one namespace in a project; the platform's names and `nodes` are reserved in it (409).",
    "",
  ];
}

function settings(): string[] {
  const rows = Object.entries(providerSettingsShape).map(([name, schema]) => `| \`${name}\` | ${schema.description} |`);
  const ofModels = Object.entries(providerModelSchema.shape as Record<string, z.ZodType>).map(
    ([name, schema]) =>
      `| \`models[].${name}\` | ${schema.description ?? "`input`, `cachedInput`, `output`, `perRequest`: nano-dollars, for a million tokens and for a call."} |`,
  );
  const { connectMs, firstByteMs, idleMs, totalMs } = DEFAULT_TIMEOUTS;
  return [
    "## Settings",
    "",
    "| field | meaning |",
    "| --- | --- |",
    "| `name` | 1 to 40 of a-z, 0-9 and -; it cannot be changed. |",
    "| `preset` | One of the table below, or null. It cannot be changed. |",
    "| `baseUrl` | What SDKs take as `base_url`. Default: the preset's. |",
    "| `credential` | Over the API: sealed at once, and never answered. |",
    "| `credentialFile`, `credentialVariable` | In the server's settings: the file, or the name of the variable, that holds it. |",
    ...rows,
    ...ofModels,
    "",
    `Time-outs, where nothing is set: ${connectMs / 1000} s to connect, ${firstByteMs / 1000} s to the first byte, ${idleMs / 1000} s of silence, ${totalMs / 60_000} minutes in all.`,
    "",
  ];
}

function safety(): string[] {
  return [
    "## What protects whom",
    "",
    "- A project's own provider must be https and lead to public addresses alone. That is looked at when it is written, and again in every",
    "  connection's own look-up of the name; no redirect is followed. `providers.allowPrivate` lifts both for the whole platform.",
    "- Its credential is sealed for its base URL: another base URL clears it. It is in no answer, log line, error or audit record.",
    "- `GET /v1/models` lists what this key may call and what can answer just now. Discovered lists are asked for anew every five minutes; where",
    "  a provider does not answer, its last list stands. A discovered list closes nothing: a name that is not on it goes to the provider.",
    "",
  ];
}

function presetRow(name: (typeof PROVIDER_PRESET_NAMES)[number]): string {
  const { baseUrl, protocols, credential, discovery, quirks, source, title } = PROVIDER_PRESETS[name];
  const scheme = credential === null ? "none" : `\`${credential.header}\``;
  const url = baseUrl === null ? title.replace(/^.*?(`.*`)$/, "$1") : `\`${baseUrl}\``;
  const { outputLimit = "max_tokens", developerRole = false, thinkingField } = quirks;
  const cells = [
    `\`${name}\``,
    url,
    protocols.join(", "),
    scheme,
    discovery ? "asked" : "named in the settings",
    `\`${outputLimit}\``,
    developerRole ? "yes" : "",
    thinkingField === undefined ? "" : `\`${thinkingField}\``,
    `[${new URL(source).host}](${source})`,
  ];
  return `| ${cells.join(" | ")} |`;
}
