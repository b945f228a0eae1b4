import { beforeEach, describe, expect, test } from "vitest";
import { generateNodeKeys } from "../link/node-keys.ts";
import type { NodeKeys } from "../state/identity-store.ts";
import { OWNER } from "../testing/builders.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { sealed } from "./seal.fixture.ts";
import { SecretVault } from "./secret-vault.ts";

const VALUE = "line one\nline two \u00e9\u{1f511}\n\n";
const { nodeId } = OWNER;
let keys: NodeKeys;
let files: MemoryFiles;
beforeEach(async () => {
  keys = await generateNodeKeys();
  files = new MemoryFiles();
});

const newVault = (changes: { readonly keys?: NodeKeys; readonly nodeId?: string } = {}) =>
  new SecretVault({ files, folder: "/state", nodeId, keys, ...changes });
const bytes = (text: string) => new TextEncoder().encode(text);

async function saved(): Promise<void> {
  const vault = newVault();
  await vault.put("TOKEN", await sealed({ keys, name: "TOKEN", value: VALUE, version: "3.c" }));
  await vault.save();
}

describe("the vault", () => {
  test("returns the exact bytes after a restart, and stores them on disk only sealed", async () => {
    await saved();
    const vault = newVault();
    expect(await vault.load()).toEqual({ damaged: false });
    expect(vault.versionOf("TOKEN")).toBe("3.c");
    expect(await vault.open("TOKEN")).toEqual(bytes(VALUE));
    for (const path of files.paths()) expect(await files.read(path)).not.toContain("line one");
  });

  test("keeps bytes that are not text", async () => {
    const value = Uint8Array.from({ length: 256 }, (_, index) => index);
    const vault = newVault();
    await vault.put("KEY", await sealed({ keys, name: "KEY", value }));
    expect(await vault.open("KEY")).toEqual(value);
  });

  test("accepts nothing that was sealed to another node's key, or as another secret", async () => {
    const vault = newVault();
    const others = await sealed({ keys: await generateNodeKeys(), name: "TOKEN", value: VALUE });
    const swapped = await sealed({ keys, name: "OTHER", value: VALUE });
    const replayed = { ...(await sealed({ keys, name: "TOKEN", value: VALUE, version: "1.a" })), version: "2.b" };
    for (const answer of [others, swapped, replayed, { version: "1.a", jwe: "not.a.jwe" }]) {
      expect(await vault.put("TOKEN", answer)).toBe(false);
    }
    expect(vault.names()).toEqual([]);
  });

  test("is empty and says so when the node's keys have changed, or a copy is damaged", async () => {
    await saved();
    const other = newVault({ keys: await generateNodeKeys() });
    expect(await other.load()).toEqual({ damaged: true });
    expect(other.names()).toEqual([]);
    for (const path of files.paths()) files.put(path, "{");
    expect(await newVault().load()).toEqual({ damaged: true });
  });

  test("leaves another node's secrets alone", async () => {
    await saved();
    const other = newVault({ nodeId: "nod_other" });
    expect(await other.load()).toEqual({ damaged: false });
    expect(other.names()).toEqual([]);
  });

  test("keeps what it accepted on a full disk, and writes it once there is room", async () => {
    files.full = true;
    const vault = newVault();
    await vault.put("TOKEN", await sealed({ keys, name: "TOKEN", value: VALUE }));
    await expect(vault.save()).rejects.toThrow("ENOSPC");
    expect(await vault.open("TOKEN")).toEqual(bytes(VALUE));
    files.full = false;
    await vault.save();
    const next = newVault();
    await next.load();
    expect(next.names()).toEqual(["TOKEN"]);
  });

  test("deletes permanently", async () => {
    await saved();
    const vault = newVault();
    await vault.load();
    expect(vault.forget("TOKEN")).toBe(true);
    expect(vault.forget("TOKEN")).toBe(false);
    await vault.save();
    for (const path of files.paths()) expect(await files.read(path)).not.toContain("TOKEN");
    expect(await vault.open("TOKEN")).toBeNull();
  });
});
