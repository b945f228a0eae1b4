import { errorAnswer } from "@fairlead/hosting/errors/error-response";
import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { RateLimit } from "./rate-limit.ts";
import { type SignInAttempt, SignInLimits } from "./sign-in-limits.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] }));
afterEach(() => vi.useRealTimers());

/** @returns how many tries were let pass before the first that was refused. */
async function triesUntilRefused(take: () => Promise<unknown>, most = 50): Promise<number> {
  for (let tries = 0; tries < most; tries++) {
    try {
      await take();
    } catch (error) {
      if (error instanceof DomainError && error.code === "rate_limit_exceeded") return tries;
      if (!(error instanceof DomainError && error.code === "invalid_credential")) throw error;
    }
  }
  return most;
}

describe("a rate limit", () => {
  const limit = (maxKeys?: number): RateLimit =>
    new RateLimit({ what: "tries", limit: 3, seconds: 60, ...(maxKeys === undefined ? {} : { maxKeys }) });

  test("allows its number of tries for each key in each window", async () => {
    const tries = limit();
    expect(await triesUntilRefused(() => tries.take("a"))).toBe(3);
    expect(await triesUntilRefused(() => tries.take("b"))).toBe(3);
    vi.advanceTimersByTime(59_000);
    await expect(tries.take("a")).rejects.toMatchObject({ code: "rate_limit_exceeded" });
    vi.advanceTimersByTime(1000);
    expect(await triesUntilRefused(() => tries.take("a"))).toBe(3);
  });

  test("counts concurrent tries", async () => {
    const tries = limit();
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => tries.take("a")));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  });

  test("says when to retry in the response headers", async () => {
    const tries = limit();
    await triesUntilRefused(() => tries.take("a"));
    vi.advanceTimersByTime(20_500);
    const error = await tries.take("a").catch((refused: unknown) => refused);
    expect(error).toMatchObject({ message: "Too many tries. Try again in 40 seconds." });
    const { status, headers } = errorAnswer(error, "req_1");
    expect(status).toBe(429);
    expect(headers).toMatchObject({
      "retry-after": "40",
      "x-ratelimit-limit": "3",
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": "40",
    });
    expect(headers).not.toHaveProperty("x-should-retry");
  });

  test("can return a try, but never more than were used", async () => {
    const tries = limit();
    await tries.take("a");
    for (let n = 0; n < 5; n++) await tries.giveBack("a");
    await tries.giveBack("b");
    expect(await triesUntilRefused(() => tries.take("a"))).toBe(3);
    expect(await triesUntilRefused(() => tries.take("b"))).toBe(3);
  });

  test("tracks a bounded number of keys, and drops the least recently used one first", async () => {
    const tries = limit(2);
    await triesUntilRefused(() => tries.take("a"));
    await tries.take("b");
    await expect(tries.take("a")).rejects.toThrow();
    await tries.take("c");
    await expect(tries.take("a")).rejects.toThrow();
    expect(await triesUntilRefused(() => tries.take("b"))).toBe(3);
    await expect(tries.take("a")).rejects.toThrow();
  });

  test("accepts keys of any length and content", async () => {
    const tries = limit();
    for (const key of ["", "\0", "x".repeat(10_000), "__proto__", "🔑'; --"]) await tries.take(key);
  });
});

describe("sign-in limits", () => {
  const WRONG = new DomainError("invalid_credential", "The email address or password is wrong.");
  const HOME = "192.0.2.1";
  const limits = (): SignInLimits => new SignInLimits({ perAddress: 12, perAddressAndAccount: 3, perAccount: 8 });
  const fail = (signIn: SignInLimits, attempt: SignInAttempt): Promise<never> =>
    signIn.attempt(attempt, async () => {
      throw WRONG;
    });
  const succeed = (signIn: SignInLimits, attempt: SignInAttempt): Promise<string> =>
    signIn.attempt(attempt, async () => "in");

  test("slow down one address for one account, regardless of case, and do not affect others", async () => {
    const signIn = limits();
    const from = (address: string, account: string) => () => fail(signIn, { address, account });
    expect(await triesUntilRefused(from(HOME, "ann@example.org"))).toBe(3);
    await expect(fail(signIn, { address: HOME, account: " ANN@example.org" })).rejects.toMatchObject({
      code: "rate_limit_exceeded",
    });
    expect(await triesUntilRefused(from(HOME, "bob@example.org"))).toBe(3);
    expect(await triesUntilRefused(from("192.0.2.2", "ann@example.org"))).toBe(3);
  });

  test("slow down one address that tries many accounts", async () => {
    const signIn = limits();
    let n = 0;
    const spray = (): Promise<never> => fail(signIn, { address: HOME, account: `user${n++}@example.org` });
    expect(await triesUntilRefused(spray)).toBe(12);
  });

  test("slow down many addresses for one account, but not the user at an address used before", async () => {
    const signIn = limits();
    await succeed(signIn, { address: HOME, account: "ann@example.org" });
    let n = 0;
    const botnet = (): Promise<never> => fail(signIn, { address: `198.51.100.${n++}`, account: "ann@example.org" });
    expect(await triesUntilRefused(botnet)).toBe(8);
    await expect(succeed(signIn, { address: HOME, account: "Ann@example.org" })).resolves.toBe("in");
    await expect(succeed(signIn, { address: "203.0.113.9", account: "ann@example.org" })).rejects.toMatchObject({
      code: "rate_limit_exceeded",
    });
    vi.advanceTimersByTime(3_600_000);
    await expect(succeed(signIn, { address: "203.0.113.9", account: "ann@example.org" })).resolves.toBe("in");
  });

  test("do not count an attempt that succeeds, or fails for a reason other than the password", async () => {
    const signIn = limits();
    const away = new DomainError("unavailable", "The store cannot be used just now.");
    for (let n = 0; n < 20; n++) {
      await succeed(signIn, { address: HOME, account: "ann@example.org" });
      const attempt = signIn.attempt({ address: HOME, account: "bob@example.org" }, async () => {
        throw away;
      });
      await expect(attempt).rejects.toBe(away);
    }
  });

  test("are reset for an account after a correct password", async () => {
    const signIn = limits();
    const attempt = { address: HOME, account: "ann@example.org" };
    for (let n = 0; n < 2; n++) await expect(fail(signIn, attempt)).rejects.toBe(WRONG);
    await succeed(signIn, attempt);
    expect(await triesUntilRefused(() => fail(signIn, attempt))).toBe(3);
  });

  test("do not allow more guesses when they are concurrent", async () => {
    const signIn = limits();
    let looked = 0;
    const guess = (): Promise<never> =>
      signIn.attempt({ address: HOME, account: "ann@example.org" }, async () => {
        looked++;
        throw WRONG;
      });
    await Promise.allSettled(Array.from({ length: 30 }, guess));
    expect(looked).toBe(3);
  });
});
