import type { NamedBuild } from "@fairlead/protocol/daemon-builds";

/** Values for the installer. URLs come from the server's settings, never from a request. */
export interface InstallScriptValues {
  readonly publicUrl: string;
  /** The build to install if no token specifies one; null if none is available. */
  readonly build: NamedBuild | null;
}

/** Fills in `scripts/install/install.sh`, whose placeholders are in single quotes. */
export function renderInstallScript(template: string, { publicUrl, build }: InstallScriptValues): string {
  return template
    .replace("'@PLATFORM_URL@'", () => shellWord(publicUrl))
    .replace("'@OFFERED_VERSION@'", () => shellWord(build?.version ?? ""));
}

/** Quotes any text as a single shell word. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
