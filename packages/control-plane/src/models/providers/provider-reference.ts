import { PROVIDER_PRESET_NAMES } from "@fairlead/protocol/providers";
import type { z } from "zod";
import { DEFAULT_TIMEOUTS, providerModelSchema, providerSettingsShape } from "./provider.ts";
import { PROVIDER_PRESETS } from "./provider-presets.ts";

/** The text of `docs/providers.md`; a test compares the two. */
export function providerReference(): string {
  return [
    "# Providers",
    "",
    "Generated from `packages/control-plane/src/models/providers`. A **provider** is an API that serves models in addition to the project's nodes. Its name",
    "is the part of a model's name before the first `/`. Platform providers are set in the server's configuration and are available to all projects.",
    "Owners and admins add a project's own providers over the API (`/v1/projects/{id}/providers`) or with `fairlead provider`. See also",
    "[decision 0018](decisions/0018-providers.md).",
    "",
    "```sh",
    "# not tried: it takes an account with the provider",
    "# a project's own provider; the credential is read from a file or stdin, never from the command line",
    "fairlead provider create openai --preset openai --credential-file openai.key",
    "fairlead provider check openai",
    "fairlead alias set fast nodes/qwen3-8b openai/gpt-5.1-mini",
    "```",
    "",
    "```yaml",
    "# platform providers, in the server's configuration",
    "providers:",
    "  platform:",
    "    - name: openai",
    "      preset: openai",
    "      credentialFile: /etc/fairlead/openai.key",
    "      models:",
    "        - name: gpt-5.1-mini",
    "          contextTokens: 400000",
    "          prices: { input: 250000000, cachedInput: 25000000, output: 2000000000 } # nano-dollars per million tokens",
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
    "`nodeModels` describes the models that nodes serve, by name; `*` matches all others. With `billing.mode: prepaid` a model without prices is 503",
    "`not_configured`, so that nothing is free by accident. To make a model free, set its prices to 0.",
    "",
    ...names(),
    ...settings(),
    ...safety(),
    "## Presets",
    "",
    "The defaults of each preset; your settings override them. *Limit*: the field that limits the response in converted calls. *Developer*: whether",
    "the role `developer` is supported. *Thinking*: the field that accepts earlier reasoning.",
    "",
    "Presets with `http://127.0.0.1` are for servers on the control plane's own machine. Projects can use them, and any plain HTTP or private",
    "address, only if an administrator sets `providers.allowPrivate`. Providers in `providers.platform` can always use plain HTTP.",
    "",
    "| preset | base URL | dialects | credential | models | limit | developer | thinking | source |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ...PROVIDER_PRESET_NAMES.map(presetRow),
    "",
  ].join("\n");
}

function names(): string[] {
  return [
    "## Names",
    "",
    "- `<provider>/<model>`: the first `/` separates the two. The rest is the provider's name of the model, which can contain more slashes.",
    "- `<node's identifier>/<model>`: only that node.",
    "- `nodes/<model>`: any node of the project that serves the model. If one fails, another is tried.",
    "- An alias, without a slash: an ordered list of the above. If a target fails before the first byte of its response, the next one is tried.",
    "- No name: the project's default model (`PATCH /v1/projects/{id}`, `defaultModel`), or else the server's (`inference.defaultModel`), or else 400.",
    "",
    "Providers, aliases and node identifiers share one namespace in a project. The names of platform providers and `nodes` are reserved (409).",
    "",
  ];
}

function settings(): string[] {
  const rows = Object.entries(providerSettingsShape).map(([name, schema]) => `| \`${name}\` | ${schema.description} |`);
  const ofModels = Object.entries(providerModelSchema.shape as Record<string, z.ZodType>).map(
    ([name, schema]) =>
      `| \`models[].${name}\` | ${schema.description ?? "`input`, `cachedInput`, `output`, `perRequest`: nano-dollars per million tokens or per call."} |`,
  );
  const { connectMs, firstByteMs, idleMs, totalMs } = DEFAULT_TIMEOUTS;
  return [
    "## Settings",
    "",
    "| field | meaning |",
    "| --- | --- |",
    "| `name` | 1 to 40 characters of a-z, 0-9 and -. Cannot be changed. |",
    "| `preset` | One of the table below, or null. Cannot be changed. |",
    "| `baseUrl` | The same as `base_url` of SDKs. Default: the preset's. |",
    "| `credential` | Over the API. Stored encrypted, and never returned. |",
    "| `credentialFile`, `credentialVariable` | In the server's configuration: the file, or the name of the variable, that contains it. |",
    ...rows,
    ...ofModels,
    "",
    `Default timeouts: ${connectMs / 1000} s to connect, ${firstByteMs / 1000} s to the first byte, ${idleMs / 1000} s of silence, ${totalMs / 60_000} minutes in total.`,
    "",
  ];
}

function safety(): string[] {
  return [
    "## Safety",
    "",
    "- A project's own provider must use HTTPS and public addresses only. This is checked when it is saved, and again when each connection",
    "  resolves the name, [also through an HTTP proxy](operations.md#outgoing-connections). Redirects are not followed. `providers.allowPrivate` removes both restrictions for the whole platform.",
    "- Its credential is encrypted together with its base URL: changing the base URL clears it. It never appears in responses, log lines, errors or audit records.",
    "- `GET /v1/models` lists the models that the key can call and that are currently available. Discovered lists are refreshed every five minutes; if",
    "  a provider doesn't respond, its last list is used. Models that are not in a discovered list can still be called.",
    "",
  ];
}

function presetRow(name: (typeof PROVIDER_PRESET_NAMES)[number]): string {
  const { baseUrl, protocols, credential, discovery, quirks, source, title } = PROVIDER_PRESETS[name];
  const scheme = credential === null ? "none" : `\`${credential.header}\``;
  const url = baseUrl === null ? title.slice(Math.max(0, title.indexOf("`"))) : `\`${baseUrl}\``;
  const { outputLimit = "max_tokens", developerRole = false, thinkingField } = quirks;
  const cells = [
    `\`${name}\``,
    url,
    protocols.join(", "),
    scheme,
    discovery ? "discovered" : "set in `models`",
    `\`${outputLimit}\``,
    developerRole ? "yes" : "",
    thinkingField === undefined ? "" : `\`${thinkingField}\``,
    `[${new URL(source).host}](${source})`,
  ];
  return `| ${cells.join(" | ")} |`;
}
