import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@fairlead/protocol/values/clock";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { migrate } from "../../installation/db/migrations/migrate.ts";
import { openDatabase } from "../../installation/db/open.ts";
import { BROWSER, cookieOf, openSignInHost, PASSWORD, type SignInHost } from "./sign-in.fixture.ts";

/** A store that cannot be asked or written must never look like a wrong credential: programs would throw theirs away. */

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const DEVICE_CODE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

let dir: string;
let host: SignInHost;
let cookies: string;
let refreshToken: string;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "fairlead-away-"));
  host = await openSignInHost(async () => {
    const store = openDatabase({ file: join(dir, "store.db") });
    await migrate(store.db, { clock: systemClock });
    return store;
  });
  await host.addUser("ann@example.org");
  cookies = cookieOf(await signIn());
  const asked = { client_id: "fairlead-cli", scope: "offline_access" };
  const device = await host.oauth.requestDevice(asked, { address: "192.0.2.7", userAgent: undefined });
  const { origin } = BROWSER;
  await host.oauth.decideDevice({ userCode: device.user_code, approve: true, cookies, origin });
  const body = { grant_type: DEVICE_CODE_GRANT, device_code: device.device_code };
  ({ refresh_token: refreshToken } = (await (await post("token", body)).json()) as { refresh_token: string });
});
afterEach(async () => {
  await host.close();
  rmSync(dir, { recursive: true });
});

const signIn = (): ReturnType<SignInHost["signIn"]["signInWithPassword"]> =>
  host.signIn.signInWithPassword({ email: "ann@example.org", password: PASSWORD, caller: BROWSER });

const post = (path: string, form: Record<string, string>): Promise<Response> =>
  fetch(`${host.url}/v1/oauth/${path}`, {
    method: "POST",
    headers: FORM,
    body: new URLSearchParams({ client_id: "fairlead-cli", ...form }),
  });

const refresh = (): Promise<Response> => post("token", { grant_type: "refresh_token", refresh_token: refreshToken });

describe("while another program holds the store's lock", () => {
  let other: ReturnType<typeof openDatabase>;
  beforeEach(async () => {
    await sql`pragma busy_timeout = 1`.execute(host.store.db);
    other = openDatabase({ file: join(dir, "store.db") });
    await sql`begin immediate`.execute(other.db);
  });
  afterEach(() => other.close());

  test.each([
    ["token", () => refresh()],
    ["device code", () => post("device/code", {})],
    ["revocation", () => post("revoke", { token: refreshToken })],
  ])("a %s call gets 503 with retry-after, in the format of OAuth", async (_, call) => {
    const response = await call();
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await response.json()).toEqual({
      error: "temporarily_unavailable",
      error_description: "The store is temporarily unavailable. Retry shortly.",
    });
  });

  test("a rejected call works afterwards: no token was spent", async () => {
    expect((await refresh()).status).toBe(503);
    await sql`rollback`.execute(other.db);
    expect((await refresh()).status).toBe(200);
  });

  test("a correct password is not reported as wrong", async () => {
    await expect(signIn()).rejects.toMatchObject({ code: "SQLITE_BUSY" });
  });
});

describe("while the store cannot be read", () => {
  beforeEach(() => sql`alter table session rename to elsewhere`.execute(host.store.db));

  test("a cookie is not reported as invalid", async () => {
    await expect(host.signIn.sessionOfCookie(cookies)).rejects.toThrow(/no such table/);
  });

  test("nobody is asked to sign in again, and no grant is reported as invalid", async () => {
    const query = new URLSearchParams({
      client_id: "fairlead-cli",
      redirect_uri: "http://127.0.0.1:1/callback",
      response_type: "code",
      code_challenge: "c".repeat(43),
      code_challenge_method: "S256",
    });
    const options = { headers: { cookie: cookies }, redirect: "manual" } as const;
    const page = await fetch(`${host.url}/v1/oauth/authorize?${query.toString()}`, options);
    expect(page.status).toBe(500);
    const renewal = await refresh();
    expect(renewal.status).toBe(500);
    expect(await renewal.json()).toMatchObject({ error: "server_error" });
  });
});
