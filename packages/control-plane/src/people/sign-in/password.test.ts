import { hash, verify } from "@node-rs/argon2";
import { describe, expect, test, vi } from "vitest";
import { HashingLine } from "./hashing-line.ts";
import { PASSWORD_MAX, refuseWeakPassword } from "./password.ts";
import { PasswordHasher } from "./password-hasher.ts";

const email = "ann.smith@example.org";
const judged = (password: string): string => {
  try {
    refuseWeakPassword(password, email);
    return "taken";
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
};

describe("a password", () => {
  test.each([
    "correct horse battery staple",
    "x8#kQ2!vPz",
    "пароль из слов и букв",
    "🐎🔋📎🐎🔋📎✅🦊🐻🐼",
    "a".repeat(PASSWORD_MAX - 4) + "bcde",
    '\'; drop table "user"; --',
    "  spaces are fine  ",
  ])("%j is accepted", (password) => {
    expect(judged(password)).toBe("taken");
  });

  test.each([
    ["", /at least 10/],
    ["short1234", /at least 10/],
    ["🐎🐎🐎🐎🐎", /at least 10/],
    ["a".repeat(10_000), /at most 256/],
    [email, /email address/],
    ["ANN.SMITH@example.ORG", /email address/],
    ["password123", /too common/],
    ["P@ssw0rd1234", /too common/],
    ["Administrator1!", /too common/],
    ["aaaaaaaaaaaa", /too common/],
    ["ababababababab", /too common/],
    ["1234567890", /too common/],
    ["0987654321", /too common/],
    ["abcdefghijkl", /too common/],
  ])("%j is rejected, with the reason", (password, reason) => {
    expect(judged(password)).toMatch(reason);
  });
});

const ADDRESS = "192.0.2.1";

describe("the password hasher", () => {
  const hasher = new PasswordHasher("nobody's");

  test("recognizes a password, and no other", async () => {
    const stored = await hasher.hash("correct horse battery staple", ADDRESS);
    expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await hasher.check("correct horse battery staple", stored, ADDRESS)).toEqual({
      right: true,
      outdated: false,
    });
    expect((await hasher.check("correct horse battery stapl", stored, ADDRESS)).right).toBe(false);
    expect(await hasher.hash("correct horse battery staple", ADDRESS)).not.toBe(stored);
  });

  test("accepts letters however a keyboard composes them", async () => {
    const stored = await hasher.hash("Zürich und Orléans".normalize("NFC"), ADDRESS);
    expect((await hasher.check("Zürich und Orléans".normalize("NFD"), stored, ADDRESS)).right).toBe(true);
  });

  test("rejects any password if there is nothing to check against", async () => {
    for (const password of ["", "nobody's", "x"]) {
      expect(await hasher.check(password, null, ADDRESS)).toEqual({ right: false, outdated: false });
    }
  });

  test("does the same work if there is nothing to check against", async () => {
    const checked: string[] = [];
    const counting = new PasswordHasher("nobody's", new HashingLine(), async (stored, password) => {
      checked.push(stored.toString().replace(/[^$]*\$[^$]*$/, ""));
      return verify(stored, password);
    });
    await counting.check("x", await hasher.hash("y", ADDRESS), ADDRESS);
    await counting.check("x", null, ADDRESS);
    expect(checked).toEqual(Array(2).fill("$argon2id$v=19$m=19456,t=2,p=1$"));
  });

  test("reports hashes with other parameters as outdated", async () => {
    const old = await hash("an old password", { memoryCost: 8192, timeCost: 1, parallelism: 1 });
    expect(await hasher.check("an old password", old, ADDRESS)).toEqual({ right: true, outdated: true });
  });

  test("hashes and checks in the shared queue", async () => {
    const line = new HashingLine();
    const run = vi.spyOn(line, "run");
    const waiting = new PasswordHasher("nobody's", line);
    await waiting.check("a password", await waiting.hash("a password", ADDRESS), ADDRESS);
    await waiting.check("a password", null, ADDRESS);
    expect(run.mock.calls.map(([address]) => address)).toEqual([ADDRESS, ADDRESS, ADDRESS]);
  });
});
