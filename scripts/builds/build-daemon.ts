import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BuildArchitecture, DaemonBuild } from "@fairlead/protocol/daemon-builds";
import { daemonBuildFile } from "@fairlead/protocol/daemon-builds";
import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import { build, type Metafile } from "esbuild";
import { daemonBundle } from "../bundle/daemon-bundle.ts";
import { packFolder, writeJson } from "./archive.ts";
import { runBuild } from "./arguments.ts";
import { ROOT, type Source } from "./checkout.ts";
import { bundledPackages, licenseText } from "./licenses.ts";
import { placeFromCheckout, placeProgram, placeRuntime, writeWhole } from "./stage.ts";

const HELP = `Usage: scripts/build-daemon [--version V] [--arch x64|arm64]… [--out DIR]

Builds the node daemon, including Node. DIR/<version>/ contains one tar per architecture, its SHA-256 and manifest.json.
A control plane serves the builds in its folder \`builds.dir\`, or in daemon-builds/ next to it. The same commit gives the same bytes.
The arm64 build is not tested.

  --version V   version (default: the release's version, plus the commit if it is not a release commit)
  --arch A      architecture; repeatable (default: both)
  --out DIR     output folder (default: daemon-builds in the checkout)
`;

const DOCS = ["docs/install.md", "docs/daemon.md"];

/** Entry point. `process.exit` ends handles that libraries left open. */
const ENTRY = `import { main } from "./packages/daemon/src/main.ts";
process.exit(await main(process.argv.slice(2)));`;

async function bundleDaemon(file: string, source: Source): Promise<Metafile> {
  const { version, commit } = source;
  const { metafile } = await build({
    ...daemonBundle,
    stdin: { contents: ENTRY, resolveDir: ROOT, loader: "ts" },
    outfile: file,
    absWorkingDir: ROOT,
    conditions: ["fairlead-source"],
    define: { FAIRLEAD_BUILD: JSON.stringify({ version, commit }) },
    legalComments: "none",
    metafile: true,
  });
  return metafile;
}

async function fillDaemon(folder: string, arch: BuildArchitecture, source: Source): Promise<void> {
  mkdirSync(join(folder, "lib"));
  const metafile = await bundleDaemon(join(folder, "lib/daemon.js"), source);
  const runtime = placeRuntime(folder, arch);
  // The daemon shares its machine with engines, so a small heap matters more than speed.
  placeProgram(folder, "fairlead-daemon", '--optimize-for-size --use-system-ca "$root/lib/daemon.js"');
  placeFromCheckout(folder, ["LICENSE", "systemd/fairlead-daemon.service", ...DOCS]);
  writeJson(join(folder, "package.json"), { name: "fairlead-daemon", version: source.version, type: "module" });
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES.txt"), licenseText([runtime, ...bundledPackages(metafile)]));
  writeJson(join(folder, "build.json"), { ...describe(source), arch });
}

function describe({ version, commit, committedAt }: Source): Omit<DaemonBuild, "files"> {
  const at = new Date(committedAt * 1000).toISOString();
  return { version, commit, committedAt: at, protocolVersions: [...PROTOCOL_VERSIONS] };
}

/** Creates `<out>/<version>/`. @returns that folder. */
export async function buildDaemon(
  source: Source,
  { architectures, out }: { readonly architectures: readonly BuildArchitecture[]; readonly out: string },
): Promise<string> {
  const target = join(out, source.version);
  await writeWhole(target, async (folder) => {
    const files: DaemonBuild["files"] = [];
    for (const arch of architectures) {
      const file = daemonBuildFile(source.version, arch);
      const stage = mkdtempSync(join(tmpdir(), "fairlead-daemon-build-"));
      try {
        await fillDaemon(stage, arch, source);
        files.push({ arch, file, ...packFolder(stage, join(folder, file), source.committedAt) });
      } finally {
        rmSync(stage, { recursive: true, force: true });
      }
    }
    writeJson(join(folder, "manifest.json"), { ...describe(source), files });
  });
  return target;
}

if (import.meta.main)
  await runBuild({ name: "build-daemon", help: HELP, folder: join(ROOT, "daemon-builds"), build: buildDaemon });
