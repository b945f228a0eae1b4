import type { NamedBuild } from "@fairlead/protocol/daemon-builds";

/** What the installer is told: addresses come from the server's settings, never from a request. */
export interface InstallScriptValues {
  readonly publicUrl: string;
  /** What is installed where no token says it; null where no build is offered. */
  readonly build: NamedBuild | null;
}

/** Fills in `install/install.sh`, whose placeholders stand in single quotes. */
export function renderInstallScript(template: string, { publicUrl, build }: InstallScriptValues): string {
  return template
    .replace("'@PLATFORM_URL@'", () => shellWord(publicUrl))
    .replace("'@OFFERED_VERSION@'", () => shellWord(build?.version ?? ""));
}

/** One word of the shell, whatever it holds. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
