import { lookup } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import { sleep, type Timers } from "../process/timers.ts";
import type { MachineNetwork } from "./network-guard.ts";

/** With systemd-resolved, the first file names a loopback address and the second the real servers. */
const RESOLVER_FILES = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/** An unreachable name server must not delay containers. */
const RESOLVE_MS = 3000;

export function machineNetwork(timers: Timers): MachineNetwork {
  return {
    addresses: () =>
      Object.values(networkInterfaces()).flatMap((own = []) =>
        own.flatMap(({ family, address }) => (family === "IPv4" ? [address] : [])),
      ),
    nameServers: async () => {
      const texts = await Promise.all(RESOLVER_FILES.map((path) => readFile(path, "utf8").catch(() => "")));
      return [...new Set(texts.flatMap(nameServersOf))];
    },
    resolve: async (host) => {
      const done = new AbortController();
      const found = lookup(host, { all: true, family: 4 }).then(
        (answers) => answers.map(({ address }) => address),
        () => [],
      );
      const late = sleep(timers, RESOLVE_MS, done.signal).then(() => []);
      return Promise.race([found, late]).finally(() => done.abort());
    },
  };
}

/** @param text of resolv.conf. @returns IPv4 addresses that containers can reach, without loopback ones. */
export function nameServersOf(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const [word, address = ""] = line.trim().split(/\s+/);
    return word === "nameserver" && isIPv4(address) && !address.startsWith("127.") ? [address] : [];
  });
}
