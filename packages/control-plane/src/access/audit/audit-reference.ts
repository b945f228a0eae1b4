import { AUDIT_ACTION_NAMES, AUDIT_ACTIONS } from "./audit.ts";

/** The text of `docs/audit.md`; a test compares the two. */
export function auditReference(): string {
  return [
    "# Audit log",
    "",
    "Generated from `packages/control-plane/src/access/audit/audit.ts`.",
    "",
    "The audit log records who did what to which resource, when, from which address and with which request. Owners and admins read their project's",
    "log with `GET /v1/projects/{id}/audit`; platform administrators read all of it with `GET /v1/audit`. Both can be filtered by `action`, `actorId`,",
    "`from` and `to`, and return the newest records first. A record is written in the transaction of its change and kept for `retention.auditDays`, even",
    "if the project or user is deleted. It never contains secrets. A call that changes nothing is not recorded.",
    "",
    "| action | meaning |",
    "| --- | --- |",
    ...AUDIT_ACTION_NAMES.map((action) => `| \`${action}\` | ${AUDIT_ACTIONS[action]} |`),
    "",
  ].join("\n");
}
