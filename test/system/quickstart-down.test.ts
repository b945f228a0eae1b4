import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const root = new URL("../..", import.meta.url).pathname;
const nodeId = `nod_test${process.pid}`;
const secrets = join("/run/fairlead-daemon/secrets", nodeId);
let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "fairlead-down-"));
  writeFileSync(join(dataDir, "quickstart.state"), `FAIRLEAD_NODE_ID=${nodeId}\n`);
});
afterEach(() => {
  for (const made of [dataDir, secrets]) rmSync(made, { recursive: true, force: true });
});

test.runIf(process.getuid?.() === 0).each(["down", "purge"])(
  "quickstart --%s leaves no decrypted secrets",
  (action) => {
    mkdirSync(join(secrets, "c1"), { recursive: true });
    writeFileSync(join(secrets, "c1", "TOKEN"), "secret");
    execFileSync(process.execPath, ["scripts/quickstart-steps/down.ts", action, dataDir], { cwd: root, stdio: "pipe" });
    expect(existsSync(secrets)).toBe(false);
  },
);
