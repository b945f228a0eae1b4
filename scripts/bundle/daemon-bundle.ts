import type { BuildOptions } from "esbuild";

/**
 * How the daemon is bundled into one file. dockerode brings SSH, gRPC and protobuf transports that a daemon on a Unix socket never
 * uses; without them the idle daemon needs about a fifth less memory (docs/performance.md), and it starts faster.
 */

const root = new URL("../..", import.meta.url).pathname;
const absent = `${root}scripts/bundle/absent-transport.cjs`;

export const programBundle: BuildOptions = {
  bundle: true,
  minify: true,
  platform: "node",
  target: "node24",
  format: "esm",
  logLevel: "warning",
  banner: {
    // CommonJS packages inside an ES module ask for Node's own parts by `require`.
    js: 'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);',
  },
};

export const daemonBundle: BuildOptions = {
  ...programBundle,
  alias: { ssh2: absent, "@grpc/grpc-js": absent, "@grpc/proto-loader": absent, protobufjs: absent },
  // Optional speed-ups that ws asks for and does without.
  external: ["bufferutil", "utf-8-validate"],
};
