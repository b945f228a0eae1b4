import type { LocalOperations, WhoisReport } from "@fairlead/control-plane/operations";
import { expect, test } from "vitest";
import type { LoadControlPlane } from "../../platform/control-plane.ts";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";

const KEY = { id: "key_1", name: "ci", projectId: "prj_1", lastUsedAt: null };
const DISABLED: WhoisReport = {
  publicId: "0123456789abcdef",
  state: "disabled",
  since: "2030-01-01T00:00:00.000Z",
  by: "ann@example.org",
  key: KEY,
};

async function whois(
  report: WhoisReport,
  { argv = ["0123456789abcdef"], input = "" }: { readonly argv?: readonly string[]; readonly input?: string } = {},
): Promise<{ code: number; out: string; asked: unknown[] }> {
  const asked: unknown[] = [];
  const operations = { whoisKey: (text: unknown) => (asked.push(text), Promise.resolve(report)) };
  const none = (): Promise<never> => Promise.reject(new Error("not this one"));
  const loadControlPlane: LoadControlPlane = () =>
    Promise.resolve({
      startServer: none,
      watchStop: none,
      openLocalAdmin: none,
      withOperations: (use) => use(operations as unknown as LocalOperations),
    });
  const { code, out } = await run(["key", "whois", ...argv], { loadControlPlane, terminal: fakeTerminal({ input }) });
  return { code, out, asked };
}

test("shows whose key it is and why it is rejected", async () => {
  const { code, out, asked } = await whois(DISABLED);
  expect([code, asked]).toEqual([0, [{ text: "0123456789abcdef" }]]);
  expect(out).toBe(
    '0123456789abcdef: key "ci" (key_1) of prj_1 is disabled since 2030-01-01T00:00:00.000Z (by ann@example.org); never used\n',
  );
});

test("reads a whole key from stdin, where other users of the machine cannot see it", async () => {
  const { asked, out } = await whois(
    { ...DISABLED, state: "good", since: null, by: null },
    { argv: [], input: "flk_whole" },
  );
  expect(asked).toEqual([{ text: "flk_whole" }]);
  expect(out).toContain("works; never used");
  expect(out).not.toContain("flk_whole");
});

test("says so when the key is unknown", async () => {
  expect((await whois({ ...DISABLED, state: "unknown", key: null })).out).toContain(
    "not found among this installation's keys",
  );
});
