/** What this program was built from. Builds have it written in by scripts/build-daemon and scripts/build-control-plane. */
export interface BuildInfo {
  readonly version: string;
  /** The commit's whole hash, with `+dirty` where the checkout had changes; `development` where the program runs from source. */
  readonly commit: string;
}

/** Of the packages; a test holds it to them. */
const SOURCE_VERSION = "0.1.0";

declare const FAIRLEAD_BUILD: BuildInfo | undefined;

/** Whether this program is a build of its own, not a checkout. */
export const IS_BUILD: boolean = typeof FAIRLEAD_BUILD !== "undefined";

export const BUILD: BuildInfo =
  typeof FAIRLEAD_BUILD === "undefined" ? { version: SOURCE_VERSION, commit: "development" } : FAIRLEAD_BUILD;

/** What `--version` says: `0.1.0 (development)`. */
export function versionLine({ version, commit }: BuildInfo): string {
  return `${version} (${commit})`;
}
