import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

const secret = { name: "TOKEN", version: 3, updatedAt: "2026-03-02T09:30:00.000Z", stale: false };
const SECRETS = "/v1/nodes/nod_1/secrets";
const put = { [`PUT ${SECRETS}/TOKEN`]: { body: secret } };

let dir: string;
let host: StubHost | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-secret-"));
});
afterEach(() => {
  host?.close();
  rmSync(dir, { recursive: true });
});

async function call(argv: readonly string[], answers: Record<string, Answer>, input?: string): ReturnType<typeof run> {
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok" };
  const terminal = fakeTerminal(input === undefined ? {} : { input });
  return run(["node", "secret", ...argv], { env, configDir: dir, terminal });
}

function fileOf(content: string | Buffer): string {
  const file = join(dir, "value");
  writeFileSync(file, content);
  return file;
}

describe("fairlead node secret", () => {
  test("put sends a file's exact bytes, warns about a trailing line break, and shows no value", async () => {
    const value = "\uFEFF-----BEGIN\n\u00e9\u{1f511}\n\n";
    const { code, out, notes } = await call(["put", "nod_1", "TOKEN", "--from-file", fileOf(value)], put);
    expect(code).toBe(0);
    expect(host?.seen).toMatchObject([{ body: { value } }]);
    expect(out).toBe("set TOKEN, version 3\n");
    expect(notes).toContain("ends with a line break");
    expect(out + notes).not.toContain("BEGIN");
  });

  test("put reads standard input when no file is given", async () => {
    const { code, notes } = await call(["put", "nod_1", "TOKEN"], put, "s3cret");
    expect(code).toBe(0);
    expect(host?.seen).toMatchObject([{ body: { value: "s3cret" } }]);
    expect(notes).toBe("");
  });

  test("put does not accept the value as an argument, where other users could read it", async () => {
    const { code } = await call(["put", "nod_1", "TOKEN", "s3cret"], put, "");
    expect(code).not.toBe(0);
    expect(host?.seen).toEqual([]);
  });

  test.each([
    ["an empty file", "", "is empty"],
    ["a file that is not text", Buffer.from([0xff, 0xfe, 0x00]), "base64"],
  ])("put rejects %s and sends nothing", async (_what, content, told) => {
    const { code, notes } = await call(["put", "nod_1", "TOKEN", "--from-file", fileOf(content)], put);
    expect(code).not.toBe(0);
    expect(notes).toContain(told);
    expect(host?.seen).toEqual([]);
  });

  test("put says which file cannot be read", async () => {
    const { code, notes } = await call(["put", "nod_1", "TOKEN", "--from-file", join(dir, "gone")], put);
    expect(code).not.toBe(0);
    expect(notes).toContain("Cannot read ");
  });

  test("list shows names and versions, and says which must be set again", async () => {
    const secrets = [secret, { ...secret, name: "OLD", version: 1, stale: true }];
    const { code, out, notes } = await call(["list", "nod_1"], { [`GET ${SECRETS}`]: { body: { secrets } } });
    expect(code).toBe(0);
    expect(out).toMatch(/TOKEN +3 .*current/);
    expect(out).toMatch(/OLD +1 .*stale/);
    expect(notes).toContain("OLD");
  });

  test("list --json prints only the host's response", async () => {
    const answers = { [`GET ${SECRETS}`]: { body: { secrets: [{ ...secret, stale: true }] } } };
    const { out, notes } = await call(["list", "nod_1", "--json"], answers);
    expect(JSON.parse(out)).toEqual({ secrets: [{ ...secret, stale: true }] });
    expect(notes).toBe("");
  });

  test("delete sends the exact name, whatever characters it contains", async () => {
    const answers = { [`DELETE ${SECRETS}/a%2Fb%20c`]: { body: {} } };
    const { code, out } = await call(["delete", "nod_1", "a/b c"], answers);
    expect(code).toBe(0);
    expect(out).toBe("deleted a/b c\n");
  });
});
