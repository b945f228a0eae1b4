import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { BuildInfo } from "@fairlead/protocol/build-info";
import { z } from "zod";

/** The checkout that a build is made of, and what it says of itself. */

export const ROOT: string = new URL("../..", import.meta.url).pathname;

export interface Source extends BuildInfo {
  /** Unix seconds: the time of everything in a build, so that the same commit gives the same bytes. */
  readonly committedAt: number;
}

/** @param given a version that somebody chose; else the packages', with the commit where it is not the release's own. */
export function readSource(given: string | undefined): Source {
  const commit = git("rev-parse", "HEAD");
  const dirty = git("status", "--porcelain") !== "";
  const packageFile = readFileSync(`${ROOT}package.json`, "utf8");
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(packageFile));
  const released = !dirty && git("tag", "--points-at", "HEAD").split("\n").includes(`v${version}`);
  return {
    version: given ?? (released ? version : `${version}-g${commit.slice(0, 10)}${dirty ? ".dirty" : ""}`),
    commit: dirty ? `${commit}+dirty` : commit,
    committedAt: Number(git("show", "--no-patch", "--format=%ct", "HEAD")),
  };
}

function git(...args: string[]): string {
  // Under sudo the checkout is another user's, which git refuses by itself.
  return execFileSync("git", ["-c", `safe.directory=${ROOT.replace(/\/$/, "")}`, "-C", ROOT, ...args], {
    encoding: "utf8",
  }).trim();
}
