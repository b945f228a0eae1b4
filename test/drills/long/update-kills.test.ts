import { BOUNDARIES, drillKills, PARTS } from "../stage/update-kills.ts";

drillKills(
  "start-first",
  PARTS.flatMap((part) => BOUNDARIES.map((boundary) => [part, boundary] as const)),
);
