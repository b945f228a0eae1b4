import { getCACertificates, rootCertificates, setDefaultCACertificates } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { trustAlso } from "./trust.ts";

const before = getCACertificates("default");
const [first = "", second = ""] = rootCertificates;
beforeEach(() => setDefaultCACertificates([first]));
afterEach(() => setDefaultCACertificates(before));

test("the CAs in a file are trusted in addition to the default ones, whatever text surrounds them", () => {
  trustAlso(`# an authority\n${second}\n# the end`);
  expect(new Set(getCACertificates("default").map(bare))).toEqual(new Set([first, second].map(bare)));
});

test.each([
  [""],
  ["-----BEGIN CERTIFICATE-----"],
  ["-----END CERTIFICATE-----"],
  ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"],
])("a file with no certificate, or with a broken one, is rejected and changes nothing", (pem) => {
  expect(() => trustAlso(pem)).toThrow();
  expect(getCACertificates("default").map(bare)).toEqual([bare(first)]);
});

function bare(pem: string): string {
  return pem.replaceAll(/\s/g, "");
}
