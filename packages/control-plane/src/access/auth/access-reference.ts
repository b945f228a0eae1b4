import { ROLES, type Role } from "@fairlead/protocol/resources";
import { mayDo, type Operation, ROLES_BY_OPERATION } from "./access.ts";
import {
  CALLERS,
  type Caller,
  DAEMON_ROUTES,
  INFERENCE_ROUTES,
  outcomeFor,
  PLATFORM_ROUTES,
  RELAY_ROUTES,
  type RouteAccess,
} from "./route-access.ts";

/** Columns of the page. The callers of `NO_GOOD` share the first column, because all routes treat them alike. */
const COLUMNS: readonly (readonly [Caller, string])[] = [
  ["nobody", "no valid credential"],
  ["stranger", "stranger"],
  ["viewer", "viewer"],
  ["member", "member"],
  ["admin", "admin"],
  ["owner", "owner"],
  ["platformAdmin", "platform administrator"],
  ["browser", "browser"],
  ["node", "node itself"],
  ["otherNode", "other node"],
  ["bootstrap", "bootstrap token"],
  ["key", "project key"],
  ["otherKey", "other project's key"],
  ["worker", "worker token"],
  ["connect", "workload-connect token"],
];

const NO_GOOD: readonly Caller[] = ["nobody", "malformed", "expired", "signedOut", "disabledKey"];

/** The text of `docs/access.md`; a test compares the two. */
export function accessReference(): string {
  return [
    "# Access",
    "",
    "Generated from `packages/control-plane/src/access/auth/access.ts` and `route-access.ts`. `test/access-matrix` calls every route as every",
    "kind of caller and compares the result.",
    "",
    "## Roles in a project",
    "",
    ...table(["operation", ...ROLES, "required for"], operationRows()),
    "",
    "Only owners can manage owners, and the last owner cannot be removed. Members can manage the keys they created.",
    "",
    "## Routes of the platform host",
    "",
    "✓: the call is allowed. A number: the status with which it is rejected. If the caller must not know that a resource exists, the status is",
    "404. 303: the browser is redirected to the sign-in page. Forms and OAuth calls that everyone can send contain their own credential: a",
    "password, a link or a code. The setup link works only until the first account exists. The callers are:",
    "",
    ...callerList(),
    "",
    ...routeTable(PLATFORM_ROUTES),
    "",
    "## Daemon link and tunnel",
    "",
    "`UPGRADE`: the request is upgraded to the daemon link or the tunnel. `LINK`: a call over the link. It always acts on the node of the",
    "credential, regardless of the message.",
    "",
    ...routeTable(DAEMON_ROUTES),
    "",
    "## Relay to workloads",
    "",
    "On the platform host, for all methods and paths, and for WebSockets.",
    "",
    ...routeTable(RELAY_ROUTES),
    "",
    "## Routes of the inference host",
    "",
    ...routeTable(INFERENCE_ROUTES),
    "",
  ].join("\n");
}

function operationRows(): string[][] {
  const operations = Object.keys(ROLES_BY_OPERATION) as Operation[];
  return operations.map((operation) => [
    `\`${operation}\``,
    ...ROLES.map((role: Role) => (mayDo(role, operation) ? "✓" : "")),
    routesThatNeed(operation),
  ]);
}

function routesThatNeed(operation: Operation): string {
  return Object.entries(PLATFORM_ROUTES)
    .filter(([, access]) => access.for === "role" && access.operation === operation)
    .map(([route]) => `\`${route}\``)
    .join(", ");
}

function callerList(): string[] {
  const whom = (caller: Caller): string => {
    if (caller !== "nobody") return CALLERS[caller];
    return NO_GOOD.map((same) => CALLERS[same]).join("; ");
  };
  return COLUMNS.map(([caller, name]) => `- **${name}**: ${whom(caller)}`);
}

function routeTable(routes: Readonly<Record<string, RouteAccess>>): string[] {
  const rows = Object.entries(routes).map(([route, access]) => [
    `\`${route}\``,
    ...COLUMNS.map(([caller]) => {
      const outcome = outcomeFor(access, caller);
      return outcome === "yes" ? "✓" : String(outcome);
    }),
  ]);
  return table(["route", ...COLUMNS.map(([, name]) => name)], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)];
}
