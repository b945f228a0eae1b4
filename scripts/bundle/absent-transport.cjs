// Stands in for a transport that the daemon's bundle leaves out: loading it does nothing, using it says what is wrong.
module.exports = new Proxy(
  {},
  {
    get(_target, name) {
      if (name === "__esModule" || typeof name === "symbol") return undefined;
      return class {
        constructor() {
          throw new Error(`the daemon's bundle leaves this transport out (${String(name)})`);
        }
      };
    },
  },
);
