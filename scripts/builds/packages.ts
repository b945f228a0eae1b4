import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ROOT } from "./checkout.ts";

/** Architecture-specific packages. npm installs those of this machine; others are fetched on demand. */

const CACHE = `${ROOT}node_modules/.cache/fairlead-builds`;
const lockSchema = z.object({
  packages: z.record(z.string(), z.object({ version: z.string().optional(), integrity: z.string().optional() })),
});

/** @returns the package's folder, in the version and with the hash from package-lock.json. */
export function packageFolder(name: string): string {
  const installed = `${ROOT}node_modules/${name}`;
  if (existsSync(join(installed, "package.json"))) return installed;
  const lock = lockSchema.parse(JSON.parse(readFileSync(`${ROOT}package-lock.json`, "utf8")));
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined) throw new Error(`package-lock.json does not contain ${name}`);
  const folder = join(CACHE, `${name.replace("/", "+")}-${version}`);
  if (!existsSync(folder)) fetchPackage({ name, version, integrity }, folder);
  return folder;
}

function fetchPackage(wanted: { name: string; version: string; integrity: string }, folder: string): void {
  const half = `${folder}.half`;
  rmSync(half, { recursive: true, force: true });
  mkdirSync(half, { recursive: true });
  const specifier = `${wanted.name}@${wanted.version}`;
  execFileSync("npm", ["pack", specifier, "--pack-destination", half, "--silent"], { stdio: ["ignore", "ignore", 2] });
  const tarball = readdirSync(half).find((file) => file.endsWith(".tgz"));
  if (tarball === undefined) throw new Error(`npm pack produced no file for ${specifier}`);
  const hash = createHash("sha512")
    .update(readFileSync(join(half, tarball)))
    .digest("base64");
  if (wanted.integrity !== `sha512-${hash}`)
    throw new Error(`${specifier} does not match the hash in package-lock.json`);
  execFileSync("tar", ["-xzf", join(half, tarball), "-C", half, "--strip-components=1", "--no-same-owner"]);
  rmSync(join(half, tarball));
  renameSync(half, folder);
}
