import { ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import { statusOf } from "./error-status.ts";

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
    "Generated from `packages/protocol/src/errors.ts` and `packages/control-plane/src/http/error-status.ts`.",
    "",
    "Every error answer of both hosts has this body, and the header `x-request-id`:",
    "",
    "```json",
    '{"error": {"message": "…", "type": "…", "code": "…", "param": null, "source": "fairlead", "requestId": "req_…"}}',
    "```",
    "",
    "`param` names the field at fault as a path (`messages[0].role`), or a header, or is null. `source` is `provider` where an",
    "upstream failed. A refusal that must not be sent again carries `x-should-retry: false`; a 401 carries `WWW-Authenticate: Bearer`.",
    "",
    "A 402 also tells what is missing, in nano-dollars (10⁻⁹ USD). What running calls hold comes back, less their costs; `resetsAt` is when a",
    "key's budget starts anew, and null where nothing does so by itself:",
    "",
    "```json",
    '"money": {"neededNanoDollars": 1200, "leftNanoDollars": 300, "heldNanoDollars": 0, "resetsAt": "2026-03-03T00:00:00.000Z"}',
    "```",
    "",
    "A `missing_secrets` names each secret that is to be set, and the connector that needs it (null: the agent itself). A `stale` one was set, and the",
    "agent's node cannot open it:",
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
