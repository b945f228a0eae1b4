import { AUDIT_ACTION_NAMES, AUDIT_ACTIONS } from "./audit.ts";

/** The text of `docs/audit.md`; a test compares the two. */
export function auditReference(): string {
  return [
    "# Audit log",
    "",
    "Generated from `packages/control-plane/src/audit/audit.ts`.",
    "",
    "Who did what to which resource, when, from which address and by which request. Owners and admins read their project's at",
    "`GET /v1/projects/{id}/audit`; platform administrators read everything at `GET /v1/audit`. Both filter by `action`, `actorId`,",
    "`from` and `to`, the newest first. A record is written in the transaction of its change, outlives the project and the people that",
    "it tells of, is kept for `retention.auditDays`, and never holds a secret. A call that changes nothing leaves no record.",
    "",
    "| action | meaning |",
    "| --- | --- |",
    ...AUDIT_ACTION_NAMES.map((action) => `| \`${action}\` | ${AUDIT_ACTIONS[action]} |`),
    "",
  ].join("\n");
}
