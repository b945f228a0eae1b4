import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { FormGuard, type PostedForm } from "./form-guard.ts";

const guard = new FormGuard({ publicUrl: "https://fairlead.example.org", randomBytes });
const refused = expect.objectContaining({ code: "permission_denied" });

/** A form as a browser posts it from our page. */
function posted(change: Partial<PostedForm> = {}, sessionId: string | null = "sis_1"): PostedForm {
  const { token, setCookie } = guard.tokenFor(undefined, sessionId);
  return {
    origin: "https://fairlead.example.org",
    fetchSite: "same-origin",
    cookies: setCookie?.split(";")[0],
    sessionId,
    token,
    ...change,
  };
}

const check = (form: PostedForm): unknown => {
  try {
    guard.check(form);
    return "accepted";
  } catch (error) {
    return error;
  }
};

describe("the form guard", () => {
  test("accepts a form from our own page, before and after a sign-in", () => {
    expect(check(posted())).toBe("accepted");
    expect(check(posted({}, null))).toBe("accepted");
  });

  test("rejects what another site sends, even if everything else is valid", () => {
    for (const fetchSite of ["cross-site", "same-site", "something-new"]) {
      expect(check(posted({ fetchSite }))).toEqual(refused);
    }
    for (const origin of ["https://evil.example", "http://fairlead.example.org", "https://fairlead.example.org.evil"]) {
      expect(check(posted({ fetchSite: undefined, origin }))).toEqual(refused);
    }
  });

  test("accepts browsers that do not send a form's origin, because of its token", () => {
    for (const origin of [undefined, "null", "https://fairlead.example.org"]) {
      expect(check(posted({ fetchSite: undefined, origin }))).toBe("accepted");
      expect(check(posted({ fetchSite: undefined, origin, token: "x" }))).toEqual(refused);
    }
  });

  test("rejects a form without its token, with another one's, or without the cookie", () => {
    for (const token of [undefined, "", "x", posted().token]) expect(check(posted({ token }))).toEqual(refused);
    for (const cookies of [undefined, "", "__Host-fairlead_form=", "__Host-fairlead_form=short", "a=b"]) {
      expect(check(posted({ cookies }))).toEqual(refused);
    }
  });

  test("rejects a form opened before a sign-in in the session after it, and one of another session", () => {
    expect(check({ ...posted({}, null), sessionId: "sis_1" })).toEqual(refused);
    expect(check({ ...posted(), sessionId: "sis_2" })).toEqual(refused);
    expect(check({ ...posted(), sessionId: null })).toEqual(refused);
  });

  test("keeps a browser's existing cookie, so that pages in other tabs remain valid", () => {
    const first = guard.tokenFor(undefined, null);
    const second = guard.tokenFor(`x=y; ${first.setCookie?.split(";")[0]}`, null);
    expect(second).toEqual({ token: first.token, setCookie: null });
  });

  test("sets the cookie for this host only, hidden from scripts, and for TLS only if TLS is used", () => {
    expect(guard.tokenFor(undefined, null).setCookie).toMatch(
      /^__Host-fairlead_form=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    const plain = new FormGuard({ publicUrl: "http://127.0.0.1:8080", randomBytes });
    expect(plain.tokenFor(undefined, null).setCookie).toMatch(
      /^fairlead_form=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/,
    );
  });
});
