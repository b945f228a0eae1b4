import { DomainError } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { ProjectAccess } from "../../access/auth/access.ts";
import type { UserPrincipal } from "../../access/auth/principal.ts";
import {
  addSums,
  type UsageDimension,
  type UsageGroup,
  type UsageRange,
  type UsageRecord,
  type UsageSums,
  wholeHours,
} from "./usage.ts";
import type { CallFilter, UsageStore } from "./usage-store.ts";

export interface UsageServiceDeps {
  /** On the store's handle for long reads. */
  readonly usage: UsageStore;
  readonly access: ProjectAccess;
  readonly clock: Clock;
}

export interface UsageQuery {
  /** Unix milliseconds. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly by: readonly UsageDimension[];
  /** The previous page's `next`; absent for the first page. */
  readonly place?: PagePlace | undefined;
}

/** A page position with its time range, so that a page requested an hour later continues the same list. */
export interface PagePlace extends UsageRange {
  readonly offset: number;
}

export interface UsageReport extends UsageRange {
  /** The sum of all groups, on all pages. */
  readonly totals: UsageSums;
  /** The page's groups, ordered by dimension; groups that cost more are on earlier pages. */
  readonly groups: readonly UsageGroup[];
  /** The sum of groups beyond the last page. Null on later pages, and if there are none. */
  readonly other: UsageSums | null;
  /** Null on the last page. */
  readonly next: PagePlace | null;
}

/** A response is built on the main thread: this many groups take two to three milliseconds. */
const PAGE_GROUPS = 500;
/** Limit for all pages together, because each page sorts all groups again. */
const MOST_GROUPS = 5000;

/** Usage of a project, readable by all its members. */
export class UsageService {
  readonly #deps: UsageServiceDeps;

  constructor(deps: UsageServiceDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found; invalid_request for an empty time range. */
  async sums(caller: UserPrincipal, projectId: string, { by, place, ...asked }: UsageQuery): Promise<UsageReport> {
    const { usage, access, clock } = this.#deps;
    await access.require(caller, projectId, "usage.read");
    const { offset, ...range } = place ?? { ...wholeHours(asked, clock.now()), offset: 0 };
    if (range.from >= range.to) throw invalid("from", "must be before `to`");
    const page = { offset, limit: PAGE_GROUPS, most: MOST_GROUPS };
    const { groups, elsewhere, other, more } = await usage.sums(projectId, { ...range, by, page });
    const totals = groups.reduce((sum, { sums }) => addSums(sum, sums), addSums(elsewhere, other));
    return {
      ...range,
      totals,
      groups: groups.toSorted(inOrder),
      other: offset > 0 || other.calls === 0 ? null : other,
      next: more ? { ...range, offset: offset + PAGE_GROUPS } : null,
    };
  }

  /** Single calls, newest first. @throws DomainError not_found */
  async calls(
    caller: UserPrincipal,
    projectId: string,
    { page, ...filter }: CallFilter & { readonly page: { readonly after: string | null; readonly limit: number } },
  ): Promise<readonly UsageRecord[]> {
    await this.#deps.access.require(caller, projectId, "usage.read");
    return this.#deps.usage.list(projectId, filter, page);
  }
}

function inOrder(a: UsageGroup, b: UsageGroup): number {
  for (const [at, left] of a.values.entries()) {
    const right = b.values[at] ?? "";
    if ((left ?? "") !== right) return (left ?? "") < right ? -1 : 1;
  }
  return 0;
}

function invalid(param: string, what: string): DomainError {
  return new DomainError("invalid_request", `\`${param}\`: ${what}.`, { param });
}
