import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BuildArchitecture } from "@fairlead/protocol/daemon-builds";
import { build, type Metafile } from "esbuild";
import { programBundle } from "../bundle/daemon-bundle.ts";
import { packFolder, writeJson } from "./archive.ts";
import { runBuild } from "./arguments.ts";
import { buildDaemon } from "./build-daemon.ts";
import { ROOT, type Source } from "./checkout.ts";
import { bundledPackages, licenseText } from "./licenses.ts";
import { packageFolder } from "./packages.ts";
import { placeFromCheckout, placeProgram, placeRuntime, writeWhole } from "./stage.ts";

const HELP = `Usage: scripts/build-control-plane [--version V] [--arch x64|arm64]… [--out DIR]

Builds the control plane and the command line, including Node. DIR/<version>/ contains one tar per architecture, its SHA-256
and manifest.json. Each tar includes the daemon builds of the same version, which the control plane offers to nodes.
Builds are reproducible: the same commit gives the same bytes. The arm64 build is not tested.

  --version V   version (default: the release's version, plus the commit if it is not a release commit)
  --arch A      architecture of the control plane; repeatable (default: both). Daemon builds are always for both.
  --out DIR     output folder (default: builds in the checkout)
`;

/** Entry point. Sets the exit code instead of calling exit, so that all output is written. */
const ENTRY = `import { main } from "./packages/cli/src/main.ts";
process.exitCode = await main(process.argv.slice(2));`;

/** The store's worker thread loads its own file next to the program. */
const STORE_WORKER = "packages/control-plane/src/installation/db/sqlite/store-worker.ts";

/** Packages with native code, copied unchanged. */
const NATIVE = ["better-sqlite3", "@node-rs/argon2"];

async function bundleControlPlane(folder: string, { version, commit }: Source): Promise<Metafile> {
  const { metafile } = await build({
    ...programBundle,
    // Native modules and optional dependencies.
    external: [...NATIVE, "pg-native", "bufferutil", "utf-8-validate"],
    entryPoints: [
      { in: "fairlead-entry", out: "fairlead" },
      { in: `${ROOT}${STORE_WORKER}`, out: "store-worker" },
    ],
    plugins: [
      {
        name: "entry",
        setup: (bundler) => {
          bundler.onResolve({ filter: /^fairlead-entry$/ }, () => ({ path: "fairlead", namespace: "entry" }));
          bundler.onLoad({ filter: /.*/, namespace: "entry" }, () => ({
            contents: ENTRY,
            resolveDir: ROOT,
            loader: "ts",
          }));
        },
      },
    ],
    outdir: folder,
    // The command line loads the server lazily. All chunks are next to the program.
    splitting: true,
    chunkNames: "[name]-[hash]",
    absWorkingDir: ROOT,
    conditions: ["fairlead-source"],
    define: { FAIRLEAD_BUILD: JSON.stringify({ version, commit }) },
    legalComments: "none",
    metafile: true,
  });
  return metafile;
}

/** @returns the package folders, for the licences. */
function placeNative(folder: string, arch: BuildArchitecture): readonly string[] {
  const sqlite = packageFolder("better-sqlite3");
  const target = join(folder, "node_modules/better-sqlite3");
  for (const part of ["package.json", "LICENSE", "lib", `prebuilds/linux-${arch}.node`]) {
    cpSync(join(sqlite, part), join(target, part), { recursive: true });
  }
  const argon2 = packageFolder("@node-rs/argon2");
  const argon2Native = packageFolder(`@node-rs/argon2-linux-${arch}-gnu`);
  cpSync(argon2, join(folder, "node_modules/@node-rs/argon2"), { recursive: true });
  cpSync(argon2Native, join(folder, `node_modules/@node-rs/argon2-linux-${arch}-gnu`), { recursive: true });
  return [sqlite, argon2, argon2Native];
}

async function fillControlPlane(folder: string, arch: BuildArchitecture, source: Source): Promise<void> {
  const metafile = await bundleControlPlane(join(folder, "lib"), source);
  const packages = [placeRuntime(folder, arch), ...placeNative(folder, arch), ...bundledPackages(metafile)];
  placeProgram(folder, "fairlead", '--use-system-ca "$root/lib/fairlead.js"');
  placeFromCheckout(folder, ["LICENSE", "systemd", "scripts/install", ...documents()]);
  writeJson(join(folder, "package.json"), { name: "fairlead", version: source.version, type: "module" });
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), licenseText(packages));
  const { version, commit } = source;
  writeJson(join(folder, "build.json"), { version, commit, committedAt: committedAt(source), arch });
}

/** Pages for operators, without decisions. */
function documents(): readonly string[] {
  const files = readdirSync(join(ROOT, "docs")).filter((file) => file.endsWith(".md"));
  return files.toSorted().map((file) => `docs/${file}`);
}

function committedAt(source: Source): string {
  return new Date(source.committedAt * 1000).toISOString();
}

interface Options {
  readonly architectures: readonly BuildArchitecture[];
  readonly out: string;
}

async function buildControlPlane(source: Source, { architectures, out }: Options): Promise<string> {
  const target = join(out, source.version);
  await writeWhole(target, async (folder) => {
    const work = mkdtempSync(join(tmpdir(), "fairlead-build-"));
    try {
      await buildDaemon(source, { architectures: ["x64", "arm64"], out: join(work, "daemon-builds") });
      const files: object[] = [];
      for (const arch of architectures) {
        const file = `fairlead-${source.version}-linux-${arch}.tar.gz`;
        const stage = join(work, arch);
        mkdirSync(join(stage, "lib"), { recursive: true });
        await fillControlPlane(stage, arch, source);
        cpSync(join(work, "daemon-builds"), join(stage, "daemon-builds"), { recursive: true });
        files.push({ arch, file, ...packFolder(stage, join(folder, file), source.committedAt) });
      }
      const { version, commit } = source;
      writeJson(join(folder, "manifest.json"), { version, commit, committedAt: committedAt(source), files });
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return target;
}

if (import.meta.main)
  await runBuild({ name: "build-control-plane", help: HELP, folder: join(ROOT, "builds"), build: buildControlPlane });
