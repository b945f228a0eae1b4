import { type Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { CliError } from "../cli-error.ts";
import { callJson, type Host } from "../platform/http-client.ts";

/** Fetches paginated lists. */

const MOST_A_PAGE = 200;

export interface ListOptions {
  readonly limit?: number;
}

export interface List<T> {
  readonly path: string;
  /** The field with the items of a page. */
  readonly field: string;
  readonly item: z.ZodType<T>;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** @param newest the default limit; undefined for all. */
export function addLimitOption(command: Command, newest?: number): Command {
  const option = new Option("--limit <number>", "maximum number of items to print").argParser(parseLimit);
  return command.addOption(newest === undefined ? option : option.default(newest));
}

/** @returns all items or the first `limit`. @throws CliError */
export async function listAll<T>(host: Host, list: List<T>, { limit = Infinity }: ListOptions): Promise<T[]> {
  const { path, field, item, query = {}, headers = {} } = list;
  const pageSchema = z
    .looseObject({ [field]: z.array(item), nextPageToken: z.string().nullish() })
    .transform((page) => ({ items: page[field] as T[], next: page["nextPageToken"] as string | null | undefined }));
  const items: T[] = [];
  let token = "";
  for (;;) {
    const pageSize = String(Math.min(MOST_A_PAGE, limit - items.length));
    const page = await callJson(
      host,
      { path: `${path}?${queryOf({ ...query, pageSize, pageToken: token })}`, headers },
      pageSchema,
    );
    items.push(...page.items);
    if (!page.next || items.length >= limit) return items.slice(0, limit);
    if (page.next === token)
      throw new CliError(`The ${host.name} at ${host.url} keeps returning the same page of the list.`);
    token = page.next;
  }
}

function queryOf(query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return new URLSearchParams(set).toString();
}

/** An integer of at least 1. @throws InvalidArgumentError */
export function parseLimit(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Must be an integer of 1 or more.");
  return Number(text);
}
