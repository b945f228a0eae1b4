import { describe, expect, test } from "vitest";
import { isPostgresUrl, splitHosts } from "./postgres-url.ts";

describe("a PostgreSQL URL", () => {
  test.each([
    ["postgres://localhost/d", ["postgres://localhost/d"]],
    ["postgresql://u:p%40@db.example.org:6432/d", ["postgresql://u:p%40@db.example.org:6432/d"]],
    [
      "postgres://u:p@one,two:5433/d?sslmode=require",
      ["postgres://u:p@one/d?sslmode=require", "postgres://u:p@two:5433/d?sslmode=require"],
    ],
    ["postgres://[::1]:5432,[::2]/d", ["postgres://[::1]:5432/d", "postgres://[::2]/d"]],
    ["postgres://u:a,b@one,two/d", ["postgres://u:a,b@one/d", "postgres://u:a,b@two/d"]],
    ["postgres://one,two", ["postgres://one", "postgres://two"]],
  ])("%s names its hosts", (url, hosts) => {
    expect(isPostgresUrl(url)).toBe(true);
    expect(splitHosts(url)).toEqual(hosts);
  });

  test.each([
    "mysql://localhost/d",
    "postgres:/localhost",
    "postgres://one:port/d",
    "postgres://one,two:99999/d",
    `postgres://${Array(17).fill("h").join(",")}/d`,
    "",
  ])("%j is not a PostgreSQL URL", (url) => {
    expect(isPostgresUrl(url)).toBe(false);
  });
});
