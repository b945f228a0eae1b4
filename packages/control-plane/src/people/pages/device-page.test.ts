import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { FakeBrowser } from "./testing/fake-browser.ts";
import { PASSWORD, pathOf, type Started, start } from "./testing/started-pages.ts";

const deviceAnswer = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri_complete: z.string(),
});
type Device = z.infer<typeof deviceAnswer>;

/** What the program shows beside the code, with the code in it. */
function linkOf({ verification_uri_complete: link }: Device): string {
  const { pathname, search } = new URL(link);
  return pathname + search;
}

/** Somebody may show another person a code of their own, and then act as them (RFC 8628 §5.4). */
describe("the device approval page", () => {
  let started: Started;
  let browser: FakeBrowser;

  beforeAll(async () => {
    started = await start({
      FAIRLEAD_SERVER_TRUSTED_PROXIES: "127.0.0.1",
      FAIRLEAD_RATE_LIMITS_DEVICE_CODES_PER_ADDRESS: "3",
      FAIRLEAD_RATE_LIMITS_DEVICE_CODE_TRIES_PER_USER: "4",
    });
    browser = await signedIn("ann@example.org");
  });
  afterAll(() => started.stop());

  async function signedIn(email: string): Promise<FakeBrowser> {
    await started.admin.createUser({ email, name: "Ann", platformAdmin: false });
    const link = pathOf((await started.admin.resetLink({ email })).url);
    const made = started.browser();
    await made.open(link);
    await made.submit(link, { email, password: PASSWORD });
    return made;
  }

  const post = (path: string, form: Record<string, string>, headers: Record<string, string>): Promise<Response> =>
    fetch(started.server.platformUrl + path, { method: "POST", body: new URLSearchParams(form), headers });

  const ask = (from: string, userAgent = "evil/1.0 <b>"): Promise<Response> =>
    post("/v1/oauth/device/code", { client_id: "fairlead-cli" }, { "x-forwarded-for": from, "user-agent": userAgent });

  const askedFrom = async (from: string): Promise<Device> => deviceAnswer.parse(await (await ask(from)).json());

  async function poll({ device_code }: Device): Promise<string | undefined> {
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const response = await post("/v1/oauth/token", { client_id: "fairlead-cli", grant_type, device_code }, {});
    return z.object({ error: z.string().optional() }).parse(await response.json()).error;
  }

  test("shows the program, time, place and device of the request; a link with the code approves nothing", async () => {
    const device = await askedFrom("203.0.113.9");
    const { text } = await browser.open(linkOf(device));
    expect(text).toContain("Allow Fairlead CLI to act as you?");
    expect(text).toContain("less than a minute ago from 203.0.113.9");
    expect(text).toContain("a different network than this browser");
    expect(text).toContain("Someone else may have sent you here");
    expect(text).toContain("“evil/1.0 &lt;b&gt;”");
    expect(text).toContain(`<p class="code">${device.user_code}</p>`);
    expect(await poll(device)).toBe("authorization_pending");
  });

  test("does not warn if the device is in the browser's own network", async () => {
    const device = await askedFrom("127.0.0.1");
    const { text } = await browser.open(linkOf(device));
    expect(text).toContain("from 127.0.0.1, the same network as this browser");
    expect(text).not.toContain("Someone else may have sent you here");
  });

  test("approves nothing before the user confirms having started it", async () => {
    const device = await askedFrom("203.0.113.10");
    await browser.open(linkOf(device));
    const again = await browser.submit("/device/decision", { decision: "allow" });
    expect(again.status).toBe(422);
    expect(again.text).toContain("Confirm that you started this yourself, or deny it.");
    expect(await poll(device)).toBe("authorization_pending");
    expect((await browser.submit("/device/decision", { decision: "allow", started: "yes" })).title).toBe(
      "The program is connected",
    );
    expect(await poll(device)).toBe("slow_down");
  });

  test("limits device codes per address", async () => {
    const statuses = await Promise.all(["a", "b", "c", "d"].map(async () => (await ask("203.0.113.20")).status));
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 200, 429]);
    expect((await ask("203.0.113.21")).status).toBe(200);
  });

  test("limits code attempts per user, from any address", async () => {
    const guesser = await signedIn("guesser@example.org");
    const tries: number[] = [];
    for (let i = 0; i < 6; i += 1) tries.push((await guesser.open("/device?user_code=BCDF-GHJK")).status);
    expect(tries).toEqual([404, 404, 404, 404, 429, 429]);
    expect((await browser.open("/device?user_code=BCDF-GHJK")).status).toBe(404);
  });
});
