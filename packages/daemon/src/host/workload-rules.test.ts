import { expect, test } from "vitest";
import { installScript, removeScript } from "./workload-rules.ts";

const bridges = { internet: "flwabcde", offline: "flxabcde" };
const facts = { bridges, pool: "198.19.0.0/16", forwardedPorts: [], platform: [], nameServers: [] };

/** The rules in order, without their common prefix. */
const rulesOf = (script: string): string[] =>
  script.split("\\n").flatMap((line) => (line.startsWith("-A ") ? [line.replace("-A FAIRLEAD-flwabcde ", "")] : []));

test("new connections pass only to other machines", () => {
  expect(rulesOf(installScript(facts))).toEqual([
    "-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN",
    "-i flxabcde+ -j DROP",
    "-m addrtype ! --dst-type UNICAST -j DROP",
    "-d 198.19.0.0/16 -j DROP",
    "-d 169.254.0.0/16 -j DROP",
    "-d 168.63.129.16/32 -j DROP",
    "-d 100.100.100.200/32 -j DROP",
    "-d 192.0.0.192/32 -j DROP",
  ]);
});

test("the platform and name servers are allowed first; without internet, only what the daemon forwards", () => {
  const rules = rulesOf(
    installScript({
      ...facts,
      forwardedPorts: [8081],
      platform: [{ address: "192.0.2.2", port: 443 }],
      nameServers: ["169.254.169.254"],
    }),
  );
  expect(rules.slice(1, 6)).toEqual([
    "-d 198.19.0.0/16 -m addrtype --dst-type LOCAL -p tcp --dport 8081 -j RETURN",
    "-i flxabcde+ -j DROP",
    "-i flwabcde+ -d 192.0.2.2 -p tcp --dport 443 -j RETURN",
    "-i flwabcde+ -d 169.254.169.254 -p udp --dport 53 -j RETURN",
    "-i flwabcde+ -d 169.254.169.254 -p tcp --dport 53 -j RETURN",
  ]);
});

test("both kinds of bridges pass through the rules once, and no longer after the removal", () => {
  const script = installScript(facts);
  for (const prefix of Object.values(bridges)) {
    const jump = `PREROUTING -i ${prefix}+ -j FAIRLEAD-flwabcde`;
    expect(script).toContain(`-C ${jump} 2>/dev/null || iptables -w 10 -t mangle -I ${jump}`);
    expect(removeScript(bridges)).toContain(`-D ${jump}`);
  }
});
