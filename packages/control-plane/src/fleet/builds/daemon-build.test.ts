import type { DaemonBuild } from "@fairlead/protocol/daemon-builds";
import { describe, expect, test } from "vitest";
import { buildForNewNodes, byteRange, findDownload, nameBuild, newestFirst } from "./daemon-build.ts";

const sha256 = "ab".repeat(32);

function build(version: string, committedAt: string): DaemonBuild {
  const file = `fairlead-daemon-${version}-linux-x64.tar.gz`;
  return {
    version,
    commit: "c0",
    committedAt,
    protocolVersions: [1],
    files: [{ arch: "x64", file, sha256, bytes: 9 }],
  };
}

const old = build("1.10.0", "2026-01-01T00:00:00Z");
const recent = build("1.9.1", "2026-02-01T00:00:00Z");

describe("which build", () => {
  test("the newest is the one that was committed last, whatever its number", () => {
    expect(newestFirst([old, recent]).map(({ version }) => version)).toEqual(["1.9.1", "1.10.0"]);
  });

  test("new nodes get the server's own version, else the newest, else none", () => {
    expect(buildForNewNodes([recent, old], "1.10.0")).toBe(old);
    expect(buildForNewNodes([old, recent], "2.0.0")).toBe(recent);
    expect(buildForNewNodes([], "2.0.0")).toBeNull();
  });

  test("a token names the version and the checksum of each architecture", () => {
    expect(nameBuild(old)).toEqual({ version: "1.10.0", sha256: { x64: sha256 } });
  });
});

describe("downloads", () => {
  test("a tar and its checksum are found by their names alone", () => {
    const name = "fairlead-daemon-1.9.1-linux-x64.tar.gz";
    expect(findDownload([old, recent], name)).toMatchObject({ kind: "archive", build: recent });
    expect(findDownload([recent], `${name}.sha256`)).toEqual({
      kind: "checksum",
      sha256,
      text: `${sha256}  ${name}\n`,
    });
  });

  test.each(["fairlead-daemon-1.9.1-linux-arm64.tar.gz", "manifest.json", "../1.9.1/manifest.json", ".sha256", ""])(
    "nothing else is: %s",
    (name) => {
      expect(findDownload([old, recent], name)).toBeNull();
    },
  );
});

describe("ranges", () => {
  const validator = { entityTag: '"a"', ifRange: undefined };

  test.each([
    ["bytes=0-3", { first: 0, last: 3 }],
    ["bytes=4-", { first: 4, last: 9 }],
    ["bytes=-3", { first: 7, last: 9 }],
    ["bytes=-30", { first: 0, last: 9 }],
    ["bytes=9-400", { first: 9, last: 9 }],
  ])("%s is sent", (header, range) => {
    expect(byteRange(header, 10, validator)).toEqual(range);
  });

  test.each([undefined, "bytes=10-", "bytes=5-4", "bytes=-", "bytes=-0", "bytes=0-1,3-4", "items=0-1", "bytes=a-b"])(
    "%s leads to the whole file",
    (header) => {
      expect(byteRange(header, 10, validator)).toBeNull();
    },
  );

  test("of a file that changed meanwhile the whole is sent", () => {
    expect(byteRange("bytes=0-3", 10, { ...validator, ifRange: '"b"' })).toBeNull();
    expect(byteRange("bytes=0-3", 10, { ...validator, ifRange: '"a"' })).not.toBeNull();
  });
});
