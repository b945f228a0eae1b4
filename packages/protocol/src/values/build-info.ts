/** Version and commit of this program, inserted by scripts/build-daemon and scripts/build-control-plane. */
export interface BuildInfo {
  readonly version: string;
  /** The full commit hash, with `+dirty` if the checkout had changes; `development` if the program runs from source. */
  readonly commit: string;
}

/** Version of the packages; a test checks that they match. */
const SOURCE_VERSION = "0.1.0";

declare const FAIRLEAD_BUILD: BuildInfo | undefined;

/** Whether this program is a build rather than a checkout. */
export const IS_BUILD: boolean = typeof FAIRLEAD_BUILD !== "undefined";

export const BUILD: BuildInfo =
  typeof FAIRLEAD_BUILD === "undefined" ? { version: SOURCE_VERSION, commit: "development" } : FAIRLEAD_BUILD;

/** Output of `--version`: `0.1.0 (development)`. */
export function versionLine({ version, commit }: BuildInfo): string {
  return `${version} (${commit})`;
}
