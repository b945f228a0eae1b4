import { listSettings } from "./config-schema.ts";

/** The text of `docs/config.md`; a test compares the two. */
export function configReference(): string {
  const rows = listSettings().map(({ path, env, defaultText, description }) => {
    const value = defaultText === "" ? "" : `\`${defaultText}\``;
    return `| \`${path.join(".")}\` | \`${env}\` | ${value} | ${description} |`;
  });
  return [
    "# Settings of the control plane",
    "",
    "Generated from `packages/control-plane/src/installation/config/config-schema.ts`. `fairlead server --config FILE` reads a YAML file.",
    "Every setting can also be set by an environment variable, which takes precedence. Unknown names in either are errors.",
    "All errors are reported together.",
    "",
    "| setting | variable | default | meaning |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    "```yaml",
    "# example",
    "dataDir: /var/lib/fairlead",
    "server:",
    "  platform: { host: 0.0.0.0, port: 8080 }",
    "  inference: { host: 0.0.0.0, port: 8081 }",
    "  publicUrl: https://fairlead.example.org",
    "  modelsUrl: https://models.example.org",
    "```",
    "",
  ].join("\n");
}
