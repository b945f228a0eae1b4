import { describe, expect, test } from "vitest";
import type { SecretSealer } from "./sealer.ts";

/** What every sealer keeps to. `make` gives a sealer with a key of its own. */
export function secretSealerContract(name: string, make: () => SecretSealer): void {
  describe(`${name}, as a secret sealer,`, () => {
    const secret = Buffer.from("s\0ecret\n€");

    test("opens what it sealed, byte for byte, including an empty secret", async () => {
      const sealer = make();
      for (const plain of [secret, Buffer.alloc(0), Buffer.alloc(70_000, 7)]) {
        const opened = await sealer.open(await sealer.seal(plain, "here"), "here");
        expect(Buffer.from(opened).equals(plain)).toBe(true);
      }
    });

    test("reveals nothing of the secret, and seals it differently each time", async () => {
      const sealer = make();
      const [one, two] = [await sealer.seal(secret, "here"), await sealer.seal(secret, "here")];
      expect(one).not.toBe(two);
      expect(one).not.toContain("ecret");
    });

    test("does not open a secret in another context", async () => {
      const sealer = make();
      await expect(sealer.open(await sealer.seal(secret, "here"), "there")).rejects.toMatchObject({
        name: "UnsealError",
      });
    });

    test("does not open text that was changed or was never sealed", async () => {
      const sealer = make();
      const sealed = await sealer.seal(secret, "here");
      for (const text of [`${sealed}x.`, sealed.slice(0, -3), sealed.replace(/^./, "z"), "", "v1.."]) {
        await expect(sealer.open(text, "here")).rejects.toMatchObject({ name: "UnsealError" });
      }
    });

    test("does not open a secret sealed with another key, if it has a key", async () => {
      await expect(make().open(await make().seal(secret, "here"), "here")).rejects.toMatchObject({
        name: "UnsealError",
      });
    });
  });
}
