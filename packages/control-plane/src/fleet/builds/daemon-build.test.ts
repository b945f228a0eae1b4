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

describe("the choice of a build", () => {
  test("sorts builds by commit time, whatever their version", () => {
    expect(newestFirst([old, recent]).map(({ version }) => version)).toEqual(["1.9.1", "1.10.0"]);
  });

  test("gives new nodes the server's own version, otherwise the newest, otherwise none", () => {
    expect(buildForNewNodes([recent, old], "1.10.0")).toBe(old);
    expect(buildForNewNodes([old, recent], "2.0.0")).toBe(recent);
    expect(buildForNewNodes([], "2.0.0")).toBeNull();
  });

  test("names the version and the checksum of each architecture in a token", () => {
    expect(nameBuild(old)).toEqual({ version: "1.10.0", sha256: { x64: sha256 } });
  });
});

describe("downloads", () => {
  test("an archive and its checksum are found only by their names", () => {
    const name = "fairlead-daemon-1.9.1-linux-x64.tar.gz";
    expect(findDownload([old, recent], name)).toMatchObject({ kind: "archive", build: recent });
    expect(findDownload([recent], `${name}.sha256`)).toEqual({
      kind: "checksum",
      sha256,
      text: `${sha256}  ${name}\n`,
    });
  });

  test.each(["fairlead-daemon-1.9.1-linux-arm64.tar.gz", "manifest.json", "../1.9.1/manifest.json", ".sha256", ""])(
    "nothing else is found: %s",
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
  ])("%s is served", (header, range) => {
    expect(byteRange(header, 10, validator)).toEqual(range);
  });

  test.each([undefined, "bytes=10-", "bytes=5-4", "bytes=-", "bytes=-0", "bytes=0-1,3-4", "items=0-1", "bytes=a-b"])(
    "%s returns the whole file",
    (header) => {
      expect(byteRange(header, 10, validator)).toBeNull();
    },
  );

  test("a file that changed in the meantime is sent whole", () => {
    expect(byteRange("bytes=0-3", 10, { ...validator, ifRange: '"b"' })).toBeNull();
    expect(byteRange("bytes=0-3", 10, { ...validator, ifRange: '"a"' })).not.toBeNull();
  });
});
