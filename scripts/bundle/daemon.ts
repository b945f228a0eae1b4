import { build } from "esbuild";
import { daemonBundle } from "./daemon-bundle.ts";

/** Bundles the daemon for use in a checkout; scripts/build-daemon creates the builds for nodes. */

const root = new URL("../..", import.meta.url).pathname;

await build({
  ...daemonBundle,
  entryPoints: [`${root}packages/daemon/dist/main.js`],
  outfile: `${root}packages/daemon/dist/bundle/main.js`,
  sourcemap: true,
  legalComments: "linked",
});
