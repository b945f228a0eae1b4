import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";

/** Lists take `pageSize` and `pageToken` and return `{<plural>: [...], nextPageToken}`. */

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 200;
const TOKEN_VERSION = "1:";

/** Spread into the query schema of a list route. */
export const pageQuery = {
  pageSize: z.coerce
    .number()
    .int()
    .min(1)
    .max(MAX_PAGE_SIZE)
    .default(DEFAULT_PAGE_SIZE)
    .describe("Maximum number of items to return."),
  pageToken: z.string().max(512).default("").describe("`nextPageToken` of the previous page."),
};

export interface PageQuery {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Query of a store: rows after this cursor (null: from the start), up to `limit`. */
export interface Page {
  readonly after: string | null;
  readonly limit: number;
}

export interface Paginated<T> {
  readonly items: readonly T[];
  /** "" at the end. */
  readonly nextPageToken: string;
}

/** Converts items, and provides the cursor of an item. */
export interface Listing<T> {
  fetch(page: Page): Promise<readonly T[]>;
  /** The unique column that orders the list. */
  cursorOf(item: T): string;
}

/** Requests one item more than the page size to detect further pages. */
export async function paginate<T>(query: PageQuery, listing: Listing<T>): Promise<Paginated<T>> {
  const after = query.pageToken === "" ? null : decodePageToken(query.pageToken);
  const found = await listing.fetch({ after, limit: query.pageSize + 1 });
  const items = found.slice(0, query.pageSize);
  const last = items.at(-1);
  const more = found.length > query.pageSize && last !== undefined;
  return { items, nextPageToken: more ? encodePageToken(listing.cursorOf(last)) : "" };
}

export function encodePageToken(cursor: string): string {
  return Buffer.from(TOKEN_VERSION + cursor).toString("base64url");
}

export function decodePageToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString();
  if (
    !text.startsWith(TOKEN_VERSION) ||
    text.includes("\0") ||
    encodePageToken(text.slice(TOKEN_VERSION.length)) !== token
  ) {
    throw new DomainError("invalid_request", "`pageToken` was not returned by this list.", { param: "pageToken" });
  }
  return text.slice(TOKEN_VERSION.length);
}
