// Replaces a transport that is not in the daemon's bundle: loading it does nothing, using it throws.
module.exports = new Proxy(
  {},
  {
    get(_target, name) {
      if (name === "__esModule" || typeof name === "symbol") return undefined;
      return class {
        constructor() {
          throw new Error(`this transport is not in the daemon's bundle (${String(name)})`);
        }
      };
    },
  },
);
