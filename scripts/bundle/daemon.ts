import { build } from "esbuild";

/**
 * Bundles the built daemon into one file. dockerode brings SSH, gRPC and protobuf transports that a daemon on a Unix socket never
 * uses; without them the idle daemon needs about a fifth less memory (docs/performance.md), and it starts faster.
 */

const root = new URL("../..", import.meta.url).pathname;
const absent = `${root}scripts/bundle/absent-transport.cjs`;

await build({
  entryPoints: [`${root}packages/daemon/dist/main.js`],
  outfile: `${root}packages/daemon/dist/bundle/main.js`,
  bundle: true,
  minify: true,
  platform: "node",
  target: "node24",
  format: "esm",
  sourcemap: true,
  legalComments: "linked",
  logLevel: "warning",
  alias: { ssh2: absent, "@grpc/grpc-js": absent, "@grpc/proto-loader": absent, protobufjs: absent },
  // Optional speed-ups that ws asks for and does without.
  external: ["bufferutil", "utf-8-validate"],
  banner: {
    // CommonJS packages inside an ES module ask for Node's own parts by `require`.
    js: 'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);',
  },
});
