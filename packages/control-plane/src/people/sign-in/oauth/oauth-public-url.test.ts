import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../../testing.fixture.ts";
import { BROWSER, cookieOf, openSignInHost, PASSWORD, type SignInHost } from "../sign-in.fixture.ts";
import { oauthMetadata } from "./oauth.ts";

const REDIRECT = "http://127.0.0.1:50123/callback";
const { origin } = BROWSER;
const DEVICE = { address: "192.0.2.7", userAgent: undefined };

describe.each([
  ["https://fairlead.example.org", "__Host-", "/"],
  ["https://example.org/fairlead", "__Secure-", "/fairlead"],
  ["http://192.0.2.1:8080", "", "/"],
  ["http://192.0.2.1:8080/fairlead", "", "/fairlead"],
])("with the public URL %s", (publicUrl, prefix, path) => {
  const secure = publicUrl.startsWith("https:");
  let host: SignInHost;
  beforeEach(async () => {
    host = await openSignInHost(openMemoryStore, {}, publicUrl);
    await host.addUser("ann@example.org");
  });
  afterEach(() => host.close());

  const signIn = (): ReturnType<SignInHost["signIn"]["signInWithPassword"]> =>
    host.signIn.signInWithPassword({ email: "ann@example.org", password: PASSWORD, caller: BROWSER });

  test("cookies are for this host only, and over TLS only if TLS is used", async () => {
    const { setCookies, session } = await signIn();
    const [cookie = ""] = setCookies;
    expect(cookie.startsWith(`${prefix}fairlead_session=`)).toBe(true);
    const attributes = cookie.split("; ").slice(1);
    expect(attributes.includes("Secure")).toBe(secure);
    expect(attributes).toEqual(expect.arrayContaining([`Path=${path}`, "HttpOnly", "SameSite=Lax"]));
    expect(attributes.join()).not.toContain("Domain");
    expect(await host.signIn.sessionOfCookie(cookieOf({ setCookies }))).toEqual(session);
  });

  test("the response to the client names the same issuer as the metadata", async () => {
    const cookies = cookieOf(await signIn());
    const page = await host.oauth.authorize(
      {
        client_id: "fairlead-cli",
        redirect_uri: REDIRECT,
        response_type: "code",
        code_challenge: "c".repeat(43),
        code_challenge_method: "S256",
      },
      cookies,
    );
    const query = page.split("?")[1] ?? "";
    const back = await host.oauth.decideConsent({ query, accept: true, cookies, origin });
    expect(new URL(back).searchParams.get("iss")).toBe(publicUrl);
    expect(oauthMetadata(publicUrl)["issuer"]).toBe(publicUrl);
    const device = await host.oauth.requestDevice({ client_id: "fairlead-cli" }, DEVICE);
    expect(device.verification_uri).toBe(`${publicUrl}/device`);
  });
});
