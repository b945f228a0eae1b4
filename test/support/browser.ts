import { accessSync, constants } from "node:fs";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const CHROMIUM = "/usr/bin/chromium";

/** A suite that needs a browser. Where none is installed it is one skipped test that says so. */
export function describeWithBrowser(name: string, suite: (browser: () => Browser) => void): void {
  const missing = reasonWithout();
  if (missing !== null) {
    test(name, ({ skip }) => skip(missing));
    return;
  }
  describe(name, () => {
    let browser: Browser;
    beforeAll(async () => {
      // Root may not use Chromium's own sandbox; the pages are ours.
      const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
      browser = await chromium.launch({ executablePath: CHROMIUM, args });
    });
    afterAll(() => browser.close());
    suite(() => browser);
  });
}

function reasonWithout(): string | null {
  try {
    accessSync(CHROMIUM, constants.X_OK);
    return null;
  } catch {
    return `no browser is installed at ${CHROMIUM}`;
  }
}

/** A browser profile of its own, as one person has it, and what its pages complained of. */
export class Person {
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #complaints: string[] = [];

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.on("pageerror", (error) => this.#complaints.push(error.message));
    page.on("console", (message) => {
      // The browser tells of every status from 400 on; pages that say what is wrong have such a status on purpose.
      const told = /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text());
      if (["error", "warning"].includes(message.type()) && !told) this.#complaints.push(message.text());
    });
  }

  /** On a small screen, and without scripts, since the pages need none. */
  static async arrive(browser: Browser): Promise<Person> {
    const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 320, height: 640 } });
    return new Person(context, await context.newPage());
  }

  /** Console errors, violations of the content security policy, and broken scripts. */
  get complaints(): readonly string[] {
    return this.#complaints;
  }

  async leave(): Promise<void> {
    await this.#context.close();
  }
}

/** What every page owes to people who use it by keyboard, by ear, or on a small screen. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await page.locator("html").getAttribute("lang")).toBe("en");
  expect(await page.title()).toMatch(/^\S.* · Fairlead$/);
  for (const one of ["h1", "body > header", "body > main"]) expect(await page.locator(one).count()).toBe(1);
  for (const input of await page.locator("input:not([type=hidden])").all()) await expectAccessibleInput(page, input);
  for (const button of await page.locator("button, a").all()) {
    const name = (await button.getAttribute("aria-label")) ?? (await button.textContent()) ?? "";
    expect(name.trim()).not.toBe("");
  }
  const ids = await Promise.all((await page.locator("[id]").all()).map((element) => element.getAttribute("id")));
  expect(ids).toEqual([...new Set(ids)]);
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
}

async function expectAccessibleInput(page: Page, input: Locator): Promise<void> {
  const id = await input.getAttribute("id");
  expect(await page.locator(`label[for="${id}"]`).count()).toBe(1);
  expect(await input.getAttribute("autocomplete")).toBeTruthy();
  const notes = (await input.getAttribute("aria-describedby"))?.split(" ") ?? [];
  for (const note of notes) expect(await page.locator(`#${note}`).count()).toBe(1);
  // What is wrong with it is read out with it.
  if ((await input.getAttribute("aria-invalid")) === "true") expect(notes).toContain(`${id}-error`);
}
