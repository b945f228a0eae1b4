import { describe, expect, test } from "vitest";
import { lookUpUser, userPart } from "./docker-user.ts";

const PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1234:1234::/home/app:/bin/sh\nodd:x:-1:0::/:\n";

/** A tar archive with one entry, as returned by Docker. */
function archiveOf(text: string, type = "0"): Uint8Array {
  const header = Buffer.alloc(512);
  header.write("passwd");
  header.write(`${Buffer.byteLength(text).toString(8).padStart(11, "0")}\0`, 124);
  header.write(type, 156);
  return Buffer.concat([header, Buffer.from(text), Buffer.alloc(1024)]);
}

describe("the user of a container", () => {
  test.each([
    ["", 0],
    ["0", 0],
    ["1000", 1000],
    ["1000:2000", 1000],
    [":2000", 0],
    ["app:staff", "app"],
    ["4294967295", "4294967295"],
  ])("given as %j is %j", (user, expected) => {
    expect(userPart(user)).toBe(expected);
  });

  test("is looked up in the image's own list", () => {
    expect(lookUpUser("app", archiveOf(PASSWD))).toBe(1234);
    expect(lookUpUser("root", archiveOf(PASSWD))).toBe(0);
  });

  test("is unknown when the list does not contain the name, or is not a list", () => {
    expect(lookUpUser("nobody", archiveOf(PASSWD))).toBeNull();
    expect(lookUpUser("odd", archiveOf(PASSWD))).toBeNull();
    expect(lookUpUser("app", archiveOf(PASSWD, "2"))).toBeNull();
    expect(lookUpUser("app", new Uint8Array())).toBeNull();
  });
});
