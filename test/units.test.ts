import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

/** What the units must say whatever else changes in them. The drills of `test/systemd` show that it works; this says at once what was lost. */

type Settings = ReadonlyMap<string, readonly string[]>;

function settingsOf(unit: string): Settings {
  const settings = new Map<string, string[]>();
  for (const line of readFileSync(new URL(`../systemd/${unit}.service`, import.meta.url), "utf8").split("\n")) {
    const [, name, value] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    settings.set(name, [...(settings.get(name) ?? []), ...value.split(" ")]);
  }
  return settings;
}

describe.each(["fairlead-daemon", "fairlead-control-plane"])("the unit of %s", (unit) => {
  const settings = settingsOf(unit);

  test("is restarted forever, however often it fails (coreos/fleet#1325, crowdsecurity/cs-firewall-bouncer#217)", () => {
    expect(settings.get("StartLimitIntervalSec")).toEqual(["0"]);
    expect(settings.get("Restart")).toEqual(["always"]);
  });

  test("accepts notifications from a helper: Node opens no datagram sockets (nodejs/node#61933, systemd/systemd#24516)", () => {
    expect(settings.get("Type")).toEqual(["notify"]);
    expect(settings.get("NotifyAccess")).toEqual(["all"]);
  });

  test("may open Unix sockets, which notifying systemd requires too (systemd/systemd#36790)", () => {
    expect(settings.get("RestrictAddressFamilies")).toContain("AF_UNIX");
  });

  test("may compile at run time, without which Node crashes at startup (gastownhall/gascity-dashboard#174)", () => {
    expect(settings.has("MemoryDenyWriteExecute")).toBe(false);
  });
});

test("the daemon's unit is independent of Docker's: restarting Docker or stopping the daemon does not stop the other", () => {
  const settings = settingsOf("fairlead-daemon");
  expect(settings.get("Wants")).toContain("docker.service");
  for (const tie of ["Requires", "Requisite", "BindsTo", "PartOf", "PropagatesStopTo", "Conflicts"]) {
    expect(settings.has(tie)).toBe(false);
  }
});
