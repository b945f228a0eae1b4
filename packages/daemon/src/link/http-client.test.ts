import { expect, test } from "vitest";
import { nodeHttpClient } from "./http-client.ts";

test("a name that nobody resolves is a failed call, which is tried again: `network-online` promises no DNS (crowdsecurity/cs-firewall-bouncer#217)", async () => {
  // RFC 6761 §6.4: this name is nobody's, ever.
  const call = nodeHttpClient({ method: "POST", url: "https://platform.invalid/v1", body: {}, timeoutMs: 5000 });
  await expect(call).rejects.toThrow(/^POST https:\/\/platform\.invalid: (the call failed|no answer within 5000 ms)$/);
});
