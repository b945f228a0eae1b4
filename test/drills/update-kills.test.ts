import { drillKills } from "./stage/update-kills.ts";

/** Those that have the most to lose; `long/` has every part at every boundary. */
drillKills("start-first", [
  ["daemon", "the pull began"],
  ["daemon", "the new container is made"],
  ["daemon", "the new engine answers"],
  ["daemon", "the old one ended"],
  ["dockerd", "the new container is made"],
  ["control plane", "the new container was started"],
  ["engine", "the old one was asked to end"],
]);
