import { describe, expect, test } from "vitest";
import { acceptBaseUrl, type Lookup } from "./base-url.ts";

const PUBLIC: Lookup = async () => [{ address: "93.184.216.34" }, { address: "2606:2800:220:1:248:1893:25c8:1946" }];
const strict = { allowPrivate: false, lookup: PUBLIC };
const refusal = { code: "invalid_request", param: "baseUrl" };

describe("a project's base URL", () => {
  test.each([
    ["https://api.example.com/v1", "https://api.example.com/v1"],
    ["https://API.Example.com:443/v1//", "https://api.example.com/v1"],
    ["https://api.example.com", "https://api.example.com"],
    ["https://api.example.com:8443/a/../b/", "https://api.example.com:8443/b"],
    ["https://bücher.example/v1", "https://xn--bcher-kva.example/v1"],
    ["https://api.example.com\\@127.0.0.1/", "https://api.example.com/@127.0.0.1"],
    ["https://93.184.216.34/v1", "https://93.184.216.34/v1"],
    ["https://[2606:4700::1111]/v1", "https://[2606:4700::1111]/v1"],
  ])("%s is stored as %s", async (text, kept) => {
    expect(await acceptBaseUrl(text, strict)).toBe(kept);
  });

  test("is not resolved if a proxy resolves names, but private addresses and local names are still rejected", async () => {
    const lookup: Lookup = async () => [{ address: "10.0.0.1" }];
    const rules = { allowPrivate: false, trustResolution: true, lookup };
    expect(await acceptBaseUrl("https://api.example.com/v1", rules)).toBe("https://api.example.com/v1");
    for (const text of ["https://10.0.0.1/v1", "https://db.internal/v1", "http://api.example.com/v1"])
      await expect(acceptBaseUrl(text, rules)).rejects.toMatchObject(refusal);
  });

  /** Every way to write an address that leads inside, and every scheme that is no https. */
  test.each([
    "http://api.example.com/v1",
    "ftp://api.example.com",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "javascript:alert(1)",
    "//api.example.com",
    "api.example.com",
    "",
    "https://",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.1./",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https://0/",
    "https://0.0.0.0/",
    "https://10.1.2.3/",
    "https://172.16.0.1/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://168.63.129.16/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://[::]/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1]/",
    "https://[fd00:ec2::254]/",
    "https://[fc00::1]/",
    "https://[ff02::1]/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://x.localhost/",
    "https://ⓛocalhost/",
    "https://printer.local/",
    "https://metadata.google.internal/",
    "https://router.lan/",
    "https://nas.home.arpa/",
    "https://intranet/",
    "https://user@api.example.com/",
    "https://user:pw@api.example.com/",
    "https://api.example.com@127.0.0.1/",
    "https://127.0.0.1#@api.example.com/",
    "https://api.example.com/v1?x=1",
    "https://api.example.com/v1?",
    "https://api.example.com/v1#x",
    "https://api.example.com/v1/chat/completions",
    "https://api.example.com/v1/responses/",
    "https://api.example.com/v1/models",
    `https://api.example.com/${"x".repeat(2048)}`,
  ])("%s is rejected", async (text) => {
    await expect(acceptBaseUrl(text, strict)).rejects.toMatchObject(refusal);
  });

  test.each(["http://127.0.0.1:11434/v1", "https://10.0.0.5/v1", "https://rack.lan/v1"])(
    "%s is rejected with a message that says how an administrator can allow it",
    async (text) => {
      const message = expect.stringMatching(/`providers\.allowPrivate`.*`providers\.platform`/);
      await expect(acceptBaseUrl(text, strict)).rejects.toMatchObject({ ...refusal, message });
    },
  );

  test("a name is rejected if any of its addresses is internal, and the error omits the address", async () => {
    for (const inside of ["10.0.0.7", "127.0.0.1", "::1", "::ffff:10.0.0.7", "fd00::1", "169.254.169.254"]) {
      const lookup: Lookup = async () => [{ address: "93.184.216.34" }, { address: inside }];
      const refused = acceptBaseUrl("https://rebind.example.com/v1", { allowPrivate: false, lookup });
      await expect(refused).rejects.toMatchObject(refusal);
      await expect(refused).rejects.not.toThrow(inside);
    }
  });

  test("a name that cannot currently be resolved is accepted, because every connection resolves it again", async () => {
    const lookup: Lookup = () => Promise.reject(new Error("ENOTFOUND"));
    expect(await acceptBaseUrl("https://new.example.com/v1", { allowPrivate: false, lookup })).toBe(
      "https://new.example.com/v1",
    );
  });

  test("plain HTTP and private addresses are accepted without resolving them if the platform allows it", async () => {
    const lookup: Lookup = () => Promise.reject(new Error("must not be asked"));
    const loose = { allowPrivate: true, lookup };
    expect(await acceptBaseUrl("http://127.0.0.1:11434/v1/", loose)).toBe("http://127.0.0.1:11434/v1");
    for (const text of ["ftp://10.0.0.1", "http://u:p@10.0.0.1", "http://10.0.0.1/v1?a=b", "x"]) {
      await expect(acceptBaseUrl(text, loose)).rejects.toMatchObject(refusal);
    }
  });
});
