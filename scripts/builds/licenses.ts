import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { z } from "zod";
import { ROOT } from "./checkout.ts";

const packageSchema = z.object({ name: z.string(), version: z.string(), license: z.unknown() });

/** Folders of the packages in a bundle. */
export function bundledPackages({ inputs }: Metafile): readonly string[] {
  const folders = Object.keys(inputs).flatMap((input) => {
    const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    return found?.[1] === undefined ? [] : [join(ROOT, found[1])];
  });
  return [...new Set(folders)];
}

/** The licences of the packages in one text, sorted by name. */
export function licenseText(folders: readonly string[]): string {
  const parts = folders.map((folder) => {
    const { name, version, license } = packageSchema.parse(
      JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
    );
    const texts = licenseFiles(folder).map((file) => readFileSync(join(folder, file), "utf8").trim());
    return [`${name} ${version} (${String(license)})`, ...texts].join("\n\n");
  });
  return `${[...new Set(parts)].toSorted().join(`\n\n${"-".repeat(72)}\n\n`)}\n`;
}

function licenseFiles(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file))
    .toSorted();
}
