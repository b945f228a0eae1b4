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

/** Columns of the page; the callers of `NO_GOOD` share the first, since no route tells them apart. */
const COLUMNS: readonly (readonly [Caller, string])[] = [
  ["nobody", "no or no good credential"],
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
    "# Who may do what",
    "",
    "Generated from `packages/control-plane/src/auth/access.ts` and `route-access.ts`. `test/access-matrix` calls every route as every",
    "kind of caller and compares.",
    "",
    "## Roles in a project",
    "",
    ...table(["operation", ...ROLES, "routes that need it"], operationRows()),
    "",
    "Owners are touched by owners alone, and the last one stays. A member manages the keys that they made themselves.",
    "",
    "## Routes of the platform host",
    "",
    "✓: the call is let in. A number: the status of the refusal. What a caller may not know about answers 404. 303: a page sends the",
    "browser to the sign-in page. Forms and OAuth calls that everybody may send carry their own credential: a password, a link, a code. The",
    "set-up link is for the first start, and leads nowhere once somebody is here. Callers are:",
    "",
    ...callerList(),
    "",
    ...routeTable(PLATFORM_ROUTES),
    "",
    "## What daemons open and call",
    "",
    "`UPGRADE`: the request is upgraded to the daemon link or the tunnel. `LINK`: a call over the link; it acts on the node of the",
    "credential, whatever the message says.",
    "",
    ...routeTable(DAEMON_ROUTES),
    "",
    "## The relay to nodes' workloads",
    "",
    "On the platform host; the same for every method and path, and for WebSockets.",
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
