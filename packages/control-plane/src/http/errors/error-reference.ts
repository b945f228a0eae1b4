import { statusOf } from "@fairlead/hosting/errors/error-status";
import { ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";

/** The text of `docs/errors.md`; a test compares the two. */
export function errorReference(): string {
  const codes = Object.keys(ERROR_CODES) as ErrorCode[];
  const rows = codes
    .toSorted((a, b) => statusOf(a) - statusOf(b))
    .map((code) => {
      const { type, retry, meaning } = ERROR_CODES[code];
      return `| ${statusOf(code)} | \`${code}\` | \`${type}\` | ${retry ? "yes" : "no"} | ${meaning} |`;
    });
  return [
    "# Errors",
    "",
    "Generated from `packages/protocol/src/errors.ts` and `packages/hosting/src/errors/error-status.ts`.",
    "",
    "Every error response of both hosts has this body, and the header `x-request-id`:",
    "",
    "```json",
    '{"error": {"message": "…", "type": "…", "code": "…", "param": null, "source": "fairlead", "requestId": "req_…"}}',
    "```",
    "",
    "`param` is the path of the invalid field (`messages[0].role`), or the name of a header, or null. Input that is validated field by field also has",
    '`errors`, with every error as `{"param", "message"}`. `source` is `provider` if an',
    "upstream failed. Requests that must not be retried get `x-should-retry: false`. A 401 has `WWW-Authenticate: Bearer`.",
    "",
    "A 402 also contains the amounts in nano-dollars (10⁻⁹ USD). The amount reserved by running calls is released when they end, less their cost.",
    "`resetsAt` is the time when a budget resets, or null if it doesn't:",
    "",
    "```json",
    '"money": {"neededNanoDollars": 1200, "leftNanoDollars": 300, "heldNanoDollars": 0, "resetsAt": "2026-03-03T00:00:00.000Z"}',
    "```",
    "",
    "A `missing_secrets` error lists each secret to set, and the connector that needs it (null: the agent itself). A `stale` secret was set, but the",
    "agent's node cannot decrypt it:",
    "",
    "```json",
    '"missingSecrets": [{"name": "SLACK_BOT_TOKEN", "connectorSlug": "slack", "stale": false}]',
    "```",
    "",
    "| status | `code` | `type` | retry | meaning |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}
