import { beforeEach, describe, expect, test } from "vitest";
import type { FakeBrowser } from "./testing/fake-browser.ts";
import {
  alertIn,
  errorOf,
  PASSWORD,
  pathOf,
  type Started,
  start,
  VOID_LINK,
  withoutIds,
} from "./testing/started-pages.ts";

describe("the set-up link", () => {
  let started: Started;
  let link: string;
  beforeEach(async () => {
    started = await start();
    link = pathOf(started.server.setUpUrl ?? "");
    return () => started.stop();
  });

  test("is not spent by being viewed, nor by a form with an error", async () => {
    const browser = started.browser();
    for (const _ of [1, 2]) expect((await browser.open(link)).status).toBe(200);
    await fetch(started.server.platformUrl + link, { method: "HEAD" });
    const wrong = await browser.submit(link, { email: "ann", name: "", password: "short" });
    expect(wrong.status).toBe(422);
    expect(errorOf(wrong, "email")).toBe("Must be an email address.");
    expect(errorOf(wrong, "name")).toBe("Must not be empty.");
    const weak = await browser.submit(link, { email: "ann@example.org", name: "Ann", password: "short" });
    expect(errorOf(weak, "password")).toMatch(/at least 10 characters/);
    const made = await browser.submit(link, { email: "Ann@example.org", name: "Ann", password: PASSWORD });
    expect(made).toMatchObject({ status: 200, path: "/account?done=welcome", title: "Your account" });
    expect(made.text).toContain("Platform administrator");
    expect((await started.browser().open(link)).status).toBe(404);
  });

  test("creates one administrator, however many forms are sent at the same time", async () => {
    const people = await Promise.all(
      ["a", "b", "c"].map(async (name) => {
        const browser = started.browser();
        await browser.open(link);
        return { browser, name };
      }),
    );
    const answers = await Promise.all(
      people.map(({ browser, name }) =>
        browser.submit(link, { email: `${name}@example.org`, name, password: PASSWORD }),
      ),
    );
    expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(["200", "404", "404"]);
    const emails = ["a", "b", "c"].map((name) => `${name}@example.org`);
    const known = await Promise.allSettled(emails.map((email) => started.admin.resetLink({ email })));
    expect(known.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("is void once any user exists, however they were created", async () => {
    const browser = started.browser();
    await browser.open(link);
    await started.admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
    const late = await browser.submit(link, { email: "eve@example.org", name: "Eve", password: PASSWORD });
    expect(late.status).toBe(404);
    expect(alertIn(late)).toBe(VOID_LINK);
  });
});

describe("a reset link", () => {
  const ann = { email: "ann@example.org", name: "Ann", platformAdmin: false };
  let started: Started;
  beforeEach(async () => {
    started = await start();
    await started.admin.createUser(ann);
    return () => started.stop();
  });
  const resetLink = async (): Promise<string> => pathOf((await started.admin.resetLink({ email: ann.email })).url);
  const signedIn = async (): Promise<FakeBrowser> => {
    const link = await resetLink();
    const browser = started.browser();
    await browser.open(link);
    await browser.submit(link, { email: ann.email, password: PASSWORD });
    return browser;
  };

  test("ends sessions only when it is used, and is used once", async () => {
    const before = await signedIn();
    const link = await resetLink();
    const people = [started.browser(), started.browser()];
    for (const browser of people) expect((await browser.open(link)).text).toContain(ann.email);
    expect((await before.open("/account")).title).toBe("Your account");
    const sent = people.map((browser) => browser.submit(link, { email: "eve@example.org", password: PASSWORD }));
    const statuses = (await Promise.all(sent)).map(({ status }) => String(status));
    expect(statuses.toSorted()).toEqual(["200", "404"]);
    expect((await before.open("/account")).title).toBe("Sign in");
  });

  test("that does not work shows the same message, whatever the reason", async () => {
    const replaced = await resetLink();
    const good = await resetLink();
    const token = good.split("/").at(-1) ?? "";
    const paths = [replaced, `/reset/fli_${"a".repeat(43)}`, "/reset/x", `/set-up/${token}`, "/reset/%27%3B--"];
    const answers = [];
    for (const path of paths) {
      const shown = await started.browser().open(path);
      expect(shown.status).toBe(404);
      answers.push(withoutIds(shown));
    }
    expect(new Set(answers).size).toBe(1);
    expect((await started.browser().open(good)).status).toBe(200);
  });
});

test("guessing links is rate limited", async () => {
  const started = await start({ FAIRLEAD_RATE_LIMITS_LINKS_PER_ADDRESS: "3" });
  const statuses = [];
  for (const n of [1, 2, 3, 4]) statuses.push((await started.browser().open(`/reset/${n}`)).status);
  expect(statuses).toEqual([404, 404, 404, 429]);
  await started.stop();
});
