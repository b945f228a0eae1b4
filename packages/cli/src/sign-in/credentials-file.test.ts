import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NO_CREDENTIALS, platformOf, withoutPlatform, withPlatform } from "./credentials.ts";
import { CredentialsFile } from "./credentials-file.ts";

const URL_A = "https://a.example.org";
const URL_B = "https://b.example.org";

let dir: string;
let file: CredentialsFile;
beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), "fairlead-credentials-")), "fairlead");
  file = new CredentialsFile(dir, { clock: systemClock, ids: systemIds(() => systemClock.now()) });
});
afterEach(() => rmSync(join(dir, ".."), { recursive: true }));

function put(text: string): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(file.path, text, { mode: 0o600 });
}

describe("CredentialsFile", () => {
  test("is empty before anything is stored, and creates no folder when it is read", () => {
    expect(file.read()).toEqual(NO_CREDENTIALS);
    expect(readdirSync(join(dir, ".."))).toEqual([]);
  });

  test("loses no changes of commands that run at the same time", async () => {
    const urls = Array.from({ length: 10 }, (_, index) => `https://${index}.example.org`);
    await Promise.all(urls.map((url) => file.update((now) => withPlatform(now, url, { projectId: url }))));
    expect(Object.keys(file.read().platforms).toSorted()).toEqual(urls);
  });

  test("is replaced atomically; a crashed writer's leftover is ignored and not left readable to others", async () => {
    put(JSON.stringify(NO_CREDENTIALS));
    writeFileSync(`${file.path}.new`, '{"half', { mode: 0o666 });
    expect(file.read()).toEqual(NO_CREDENTIALS);
    await file.update((now) => ({ ...now, defaultUrl: URL_A }));
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir)).toEqual(["credentials.json"]);
  });

  test("keeps fields that a newer version wrote", async () => {
    put(JSON.stringify({ ...NO_CREDENTIALS, theme: "dark" }));
    await file.update((now) => ({ ...now, defaultUrl: URL_A }));
    expect(JSON.parse(readFileSync(file.path, "utf8"))).toMatchObject({ theme: "dark", defaultUrl: URL_A });
  });

  test.each(["", "{", "[]", '{"version":2,"defaultUrl":null,"platforms":{}}'])(
    "says what to do when it contains %j",
    (text) => {
      put(text);
      expect(() => file.read()).toThrow(
        /damaged or was written by a newer version. Delete it and run `fairlead login`/,
      );
    },
  );

  test("is not written when the update fails", async () => {
    await expect(file.exclusively(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(readdirSync(dir)).toEqual([]);
  });
});

describe("credentials", () => {
  test("hold one entry per platform", () => {
    const two = withPlatform(withPlatform(NO_CREDENTIALS, URL_A, { projectId: "prj_a" }), URL_B, {
      projectId: "prj_b",
    });
    expect([platformOf(two, URL_A).projectId, platformOf(two, URL_B).projectId]).toEqual(["prj_a", "prj_b"]);
    expect(platformOf(withoutPlatform(two, URL_A), URL_A)).toEqual({ login: null, projectId: null });
    expect(platformOf(NO_CREDENTIALS, "constructor")).toEqual({ login: null, projectId: null });
  });
});
