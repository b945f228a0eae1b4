/** Builds the packet filter rules for workload networks as a shell script. Pure. */

export interface RuleFacts {
  /** Prefixes of the bridges' names, by reachability; unique per node. */
  readonly bridges: { readonly internet: string; readonly offline: string };
  /** Address pool of the networks. */
  readonly pool: string;
  /** Ports on which the daemon forwards to the platform. */
  readonly forwardedPorts: readonly number[];
  /** Addresses of the platform on this machine. */
  readonly platform: readonly { readonly address: string; readonly port: number }[];
  /** This machine's name servers. */
  readonly nameServers: readonly string[];
}

/** Metadata services outside the link-local range: Azure, Alibaba Cloud, Oracle Cloud. */
const METADATA = ["169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32"];

/**
 * The `mangle` table is evaluated before NAT and before the rules of Docker and firewalls, so their order does not
 * matter. The chain is replaced atomically, so there is no moment without rules.
 */
export function installScript(facts: RuleFacts): string {
  const chain = chainOf(facts.bridges);
  const rules = rulesOf(facts).map((rule) => `-A ${chain} ${rule}`);
  const restore = ["*mangle", `:${chain} - [0:0]`, ...rules, "COMMIT", ""].join("\\n");
  const jumps = Object.values(facts.bridges).map((prefix) => jumpScript(chain, prefix));
  return ["set -e", `printf '${restore}' | iptables-restore -w 10 --noflush`, ...jumps].join("\n");
}

export function removeScript(bridges: RuleFacts["bridges"]): string {
  const chain = chainOf(bridges);
  const jumps = Object.values(bridges).map(
    (prefix) => `while iptables -w 10 -t mangle -D PREROUTING -i ${prefix}+ -j ${chain} 2>/dev/null; do :; done`,
  );
  return [
    ...jumps,
    `iptables -w 10 -t mangle -F ${chain} 2>/dev/null && iptables -w 10 -t mangle -X ${chain}`,
    "true",
  ].join("\n");
}

function chainOf({ internet }: RuleFacts["bridges"]): string {
  return `FAIRLEAD-${internet}`;
}

function jumpScript(chain: string, prefix: string): string {
  const jump = `PREROUTING -i ${prefix}+ -j ${chain}`;
  return `iptables -w 10 -t mangle -C ${jump} 2>/dev/null || iptables -w 10 -t mangle -I ${jump}`;
}

function rulesOf({ bridges, pool, forwardedPorts, platform, nameServers }: RuleFacts): string[] {
  const { internet, offline } = bridges;
  return [
    // Responses to this machine's requests.
    "-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN",
    ...forwardedPorts.map((port) => `-d ${pool} -m addrtype --dst-type LOCAL -p tcp --dport ${port} -j RETURN`),
    `-i ${offline}+ -j DROP`,
    ...platform.map(({ address, port }) => `-i ${internet}+ -d ${address} -p tcp --dport ${port} -j RETURN`),
    ...nameServers.flatMap((address) =>
      ["udp", "tcp"].map((protocol) => `-i ${internet}+ -d ${address} -p ${protocol} --dport 53 -j RETURN`),
    ),
    // This machine, and broadcasts.
    "-m addrtype ! --dst-type UNICAST -j DROP",
    `-d ${pool} -j DROP`,
    ...METADATA.map((subnet) => `-d ${subnet} -j DROP`),
  ];
}
