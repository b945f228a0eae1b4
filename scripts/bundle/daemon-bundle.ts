import type { BuildOptions } from "esbuild";

/**
 * Bundle options of the daemon. dockerode includes SSH, gRPC and protobuf transports that a daemon on a Unix socket never
 * uses. Without them, the idle daemon needs about 20 % less memory (docs/performance.md) and starts faster.
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
    // Bundled CommonJS packages `require` Node's built-in modules.
    js: 'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);',
  },
};

export const daemonBundle: BuildOptions = {
  ...programBundle,
  alias: { ssh2: absent, "@grpc/grpc-js": absent, "@grpc/proto-loader": absent, protobufjs: absent },
  // Optional dependencies of ws.
  external: ["bufferutil", "utf-8-validate"],
};
