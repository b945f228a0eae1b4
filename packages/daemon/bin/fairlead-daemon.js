#!/usr/bin/env node
// Plain JavaScript for Node 18 and later: an older Node hands over to the one installed by npm.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

const [major, minor] = process.versions.node.split(".").map(Number);

function pinnedNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`);
  } catch {
    process.stderr.write("This program needs Node 24.11 or later. Run `npm ci --ignore-scripts` to install it.\n");
    process.exit(1);
  }
}

function runPinned() {
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(pinnedNode(), args, { stdio: "inherit" });
  // A terminal sends Ctrl-C to both processes; forwarding it would count as a second Ctrl-C.
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

if (major > 24 || (major === 24 && minor >= 11)) {
  // The daemon shares its machine with engines, so a small heap matters more than speed.
  setFlagsFromString("--optimize-for-size");
  const { main } = await import("../dist/bundle/main.js");
  // Everything is closed; do not wait for handles that libraries left open.
  process.exit(await main(process.argv.slice(2)));
} else {
  runPinned();
}
