import type { Clock } from "@fairlead/protocol/clock";
import { DomainError } from "@fairlead/protocol/errors";
import type { ProjectAccess } from "../auth/access.ts";
import type { UserPrincipal } from "../auth/principal.ts";
import {
  addSums,
  NOTHING_USED,
  type UsageDimension,
  type UsageGroup,
  type UsageRange,
  type UsageRecord,
  type UsageSums,
  wholeHours,
} from "./usage.ts";
import type { CallFilter, UsageStore } from "./usage-store.ts";

export interface UsageServiceDeps {
  /** On the store's handle for long work. */
  readonly usage: UsageStore;
  readonly access: ProjectAccess;
  readonly clock: Clock;
}

export interface UsageQuery {
  /** Unix milliseconds. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly by: readonly UsageDimension[];
}

export interface UsageReport extends UsageRange {
  /** The sum of all groups. */
  readonly totals: UsageSums;
  /** In the order of what they are told apart by. */
  readonly groups: readonly UsageGroup[];
}

/** An answer is put together on the main thread: so many take two to three milliseconds of it. */
const MOST_GROUPS = 500;

/** What people may read of what calls used: everybody in the project reads all of it. */
export class UsageService {
  readonly #deps: UsageServiceDeps;

  constructor(deps: UsageServiceDeps) {
    this.#deps = deps;
  }

  /** @throws DomainError not_found; invalid_request for a time span that is none, and where there are too many groups. */
  async sums(caller: UserPrincipal, projectId: string, { by, ...asked }: UsageQuery): Promise<UsageReport> {
    const { usage, access, clock } = this.#deps;
    await access.require(caller, projectId, "usage.read");
    const range = wholeHours(asked, clock.now());
    if (range.from >= range.to) throw invalid("from", "must be before `to`");
    const groups = await usage.sums(projectId, { ...range, by, limit: MOST_GROUPS + 1 });
    if (groups.length > MOST_GROUPS) {
      throw invalid("groupBy", `makes more than ${MOST_GROUPS} groups: ask for less time, or group by less`);
    }
    const totals = groups.reduce((sum, { sums }) => addSums(sum, sums), NOTHING_USED);
    return { ...range, totals, groups: groups.toSorted(inOrder) };
  }

  /** Single calls, the newest first. @throws DomainError not_found */
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
