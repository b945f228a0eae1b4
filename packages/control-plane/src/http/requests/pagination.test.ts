import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Page, pageQuery, paginate } from "./pagination.ts";

const all = Array.from({ length: 7 }, (_, i) => ({ id: `prj_${i}` }));
const listing = {
  fetch: async ({ after, limit }: Page) => all.filter(({ id }) => after === null || id > after).slice(0, limit),
  cursorOf: (item: { readonly id: string }) => item.id,
};

describe("pagination", () => {
  test.each([1, 2, 3, 6, 7, 8])("pages of %d visit every item once and end with an empty token", async (pageSize) => {
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await paginate({ pageSize, pageToken }, listing);
      expect(page.items.length).toBeLessThanOrEqual(pageSize);
      seen.push(...page.items.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(all.map(({ id }) => id));
  });

  test("a list without items has one empty page", async () => {
    const nothing = { ...listing, fetch: async () => [] };
    expect(await paginate({ pageSize: 50, pageToken: "" }, nothing)).toEqual({ items: [], nextPageToken: "" });
  });

  test.each(["prj_3", "AAAA", "MTpwcmpfMw=", "%00"])("the forged token %j is rejected", async (pageToken) => {
    await expect(paginate({ pageSize: 2, pageToken }, listing)).rejects.toMatchObject({
      code: "invalid_request",
      param: "pageToken",
    });
  });

  test("pages contain 50 items by default, and 1 to 200 on request", () => {
    const query = z.object(pageQuery);
    expect(query.parse({})).toEqual({ pageSize: 50, pageToken: "" });
    expect(query.parse({ pageSize: "200" }).pageSize).toBe(200);
    for (const pageSize of ["0", "201", "-1", "1.5", "x", ""])
      expect(query.safeParse({ pageSize }).success).toBe(false);
  });
});
