import { EVERY_DRILL } from "./stage/every-drill.ts";
import { BOUNDARIES, drillKills, type Kill, PARTS } from "./stage/update-kills.ts";

/** Those that have the most to lose. */
const CHOICE: readonly Kill[] = [
  ["daemon", "the pull began"],
  ["daemon", "the new container is made"],
  ["daemon", "the new engine answers"],
  ["daemon", "the old one ended"],
  ["dockerd", "the new container is made"],
  ["control plane", "the new container was started"],
  ["engine", "the old one was asked to end"],
];
const EVERY: readonly Kill[] = PARTS.flatMap((part) => BOUNDARIES.map((boundary) => [part, boundary] as const));

drillKills("start-first", EVERY_DRILL ? EVERY : CHOICE);
// An engine that ends before it was ready is rolled back here at once, which is what is asked for, and no fault.
if (EVERY_DRILL)
  drillKills(
    "stop-first",
    EVERY.filter(([part, boundary]) => part !== "engine" || boundary === "the new engine answers"),
  );
