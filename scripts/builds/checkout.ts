import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { z } from "zod";
import type { BuildInfo } from "../../packages/protocol/src/values/build-info.ts";

/** Version and commit of the checkout. */

export const ROOT: string = new URL("../..", import.meta.url).pathname;

export interface Source extends BuildInfo {
  /** Unix seconds. Used for all times in a build, for reproducibility. */
  readonly committedAt: number;
}

/** @param given an explicit version; default: the packages' version, plus the commit if it is not a release commit. */
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
  // Under sudo, the checkout belongs to another user, which git rejects by default.
  return execFileSync("git", ["-c", `safe.directory=${ROOT.replace(/\/$/, "")}`, "-C", ROOT, ...args], {
    encoding: "utf8",
  }).trim();
}
