import type { BoundRows } from "./bound-row.ts";

/** Sign-in, OAuth and identity providers. */
export const SIGN_IN_BOUNDS = {
  device_codes: {
    party: "anyone",
    entry: "`POST /v1/oauth/device/code`",
    limit: "60 codes per address in 10 minutes (`rateLimits.deviceCodesPerAddress`); each is valid for 10 minutes",
    effect: "429 `temporarily_unavailable`",
    counted: '`fairlead_http_requests_total{route="/v1/oauth/device/code",status="429"}`',
    test: "packages/control-plane/src/people/pages/device-page.test.ts: limits device codes per address",
  },
  device_code_tries: {
    party: "browser",
    entry: "`/device`",
    limit:
      "20 invalid codes per user in 15 minutes (`rateLimits.deviceCodeTriesPerUser`), and 30 per address (`rateLimits.linksPerAddress`)",
    effect: "429",
    counted: '`fairlead_http_requests_total{route="/device",status="429"}`',
    test: "packages/control-plane/src/people/pages/device-page.test.ts: limits code attempts per user",
  },
  oidc_response: {
    party: "issuer",
    entry: "discovery document, keys, token and userinfo responses of an OIDC provider",
    limit:
      "256 KiB, 64 levels of JSON, 10 s each; redirects and endpoints at addresses other than the issuer's are not followed",
    effect: "the sign-in fails: 401 or 503",
    event: 'log line "request refused" or "request failed" with the reason',
    test: "packages/control-plane/src/people/sign-in/oidc/oidc-hostile.test.ts: is read to its limit and no further",
  },
  oidc_sign_ins: {
    party: "browser",
    entry: "`/sign-in/{provider}/callback`",
    limit: "32 at a time per OIDC provider; its discovery document is fetched only once for concurrent sign-ins",
    effect: "503 `overloaded`, retry after 10 s",
    test: "packages/control-plane/src/people/sign-in/oidc/oidc-hostile.test.ts: a provider that does not respond blocks a limited number of sign-ins",
  },
  password_hashing: {
    party: "anyone",
    entry: "checking and setting passwords",
    limit: "2 at a time and about 60 waiting; a quarter of these for one address range, less while others wait too",
    effect: "503 `overloaded` immediately, with `retry-after`; does not count as a failed sign-in",
    test: "packages/control-plane/src/people/sign-in/hashing-line.test.ts: are rejected immediately when the queue is full",
  },
} as const satisfies BoundRows;
