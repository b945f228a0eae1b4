import { build } from "esbuild";
import { daemonBundle } from "./daemon-bundle.ts";

/** Bundles the built daemon for a checkout; scripts/build-daemon makes what goes onto nodes. */

const root = new URL("../..", import.meta.url).pathname;

await build({
  ...daemonBundle,
  entryPoints: [`${root}packages/daemon/dist/main.js`],
  outfile: `${root}packages/daemon/dist/bundle/main.js`,
  sourcemap: true,
  legalComments: "linked",
});
