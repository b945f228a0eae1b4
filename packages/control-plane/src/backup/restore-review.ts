/** What a restore takes back, so that somebody can look after it. Pure. */

/** What counts of a store; each map is by the thing's id or name. */
export interface ReviewFacts {
  readonly projects: ReadonlyMap<string, string>;
  readonly users: ReadonlyMap<string, string>;
  /** `<project> <user>` → role. */
  readonly members: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, KeyFacts>;
  readonly nodes: ReadonlyMap<string, NodeFacts>;
  /** `<node> <name>` → when it was last set; deleted ones are not here. */
  readonly secrets: ReadonlyMap<string, number>;
  readonly agents: ReadonlyMap<string, AgentFacts>;
  /** `<agent> <name>`, as of nodes. */
  readonly agentSecrets: ReadonlyMap<string, number>;
  /** `<project> <name>` → when it was last changed. */
  readonly providers: ReadonlyMap<string, number>;
  /** Nano-dollars by project. */
  readonly balances: ReadonlyMap<string, number>;
  /** The key that signs tokens. */
  readonly signingKeyId: string;
}

export interface KeyFacts {
  readonly name: string;
  readonly projectId: string;
  readonly secretHash: string;
  /** Whether it works, until when, and its limits, in one text. */
  readonly terms: string;
}

export interface NodeFacts {
  readonly name: string;
  readonly projectId: string;
  /** Null before its daemon has enrolled. */
  readonly signingKey: string | null;
}

export interface AgentFacts {
  readonly name: string;
  readonly projectId: string;
  /** Whether it is to run, where, and its limits, in one text. */
  readonly terms: string;
}

/** One kind of thing to look after. */
export interface Recheck {
  /** What was the case when the backup was restored, as a sentence's beginning: `Keys that were deleted since`. */
  readonly what: string;
  readonly todo: string;
  readonly items: readonly string[];
}

/** @param present the store that is replaced. @param backup the store that takes its place. @returns only kinds that there are. */
export function reviewRestore(present: ReviewFacts, backup: ReviewFacts): readonly Recheck[] {
  const all = [
    ...reviewKeys(present, backup),
    ...reviewNodes(present, backup),
    ...reviewAgents(present, backup),
    ...reviewPeople(present, backup),
    ...reviewSecrets(present, backup),
    ...reviewMoney(present, backup),
  ];
  return all.filter(({ items }) => items.length > 0);
}

function reviewKeys({ keys: present, signingKeyId }: ReviewFacts, backup: ReviewFacts): readonly Recheck[] {
  const { keys } = backup;
  const label = (id: string, { name, projectId }: KeyFacts): string => `${id} (${name}) of ${projectId}`;
  return [
    {
      what: "Project keys that were deleted since, and work again",
      todo: "delete them again at once: fairlead key delete",
      items: only(keys, present, label),
    },
    {
      what: "Project keys that were rotated since: their earlier value works again, the newer one does not",
      todo: "rotate them again, and hand out the new values: fairlead key rotate",
      items: changed(keys, present, { differ: (a, b) => a.secretHash !== b.secretHash, label }),
    },
    {
      what: "Project keys whose state or limits were changed since",
      todo: "change them again: fairlead key update",
      items: changed(keys, present, { differ: (a, b) => a.terms !== b.terms, label }),
    },
    {
      what: "Project keys that were made since, and work no more",
      todo: "make new ones: fairlead key create",
      items: only(present, keys, label),
    },
    {
      what: "The key that signs tokens was rotated since; the earlier one signs again",
      todo: "if that was because it leaked: fairlead admin rotate-signing-key",
      items: signingKeyId === backup.signingKeyId ? [] : [`${backup.signingKeyId} instead of ${signingKeyId}`],
    },
  ];
}

function reviewNodes({ nodes: present }: ReviewFacts, { nodes }: ReviewFacts): readonly Recheck[] {
  const label = (id: string, { name, projectId }: NodeFacts): string => `${id} (${name}) of ${projectId}`;
  return [
    {
      what: "Nodes that enrolled since, or again with another key: their daemons are refused",
      todo: "give each machine a fresh bootstrap token: fairlead node bootstrap-token",
      items: changed(nodes, present, { differ: (then, now) => then.signingKey !== now.signingKey, label }),
    },
    {
      what: "Nodes that were made since, and are unknown now",
      todo: "make them again, and enrol their machines: fairlead node create",
      items: only(present, nodes, label),
    },
    {
      what: "Nodes that were deleted since, and are there again",
      todo: "delete them again: fairlead node delete",
      items: only(nodes, present, label),
    },
  ];
}

function reviewAgents({ agents: present }: ReviewFacts, { agents }: ReviewFacts): readonly Recheck[] {
  const label = (id: string, { name, projectId }: AgentFacts): string => `${id} (${name}) of ${projectId}`;
  return [
    {
      what: "Agents that were deleted since, and are there again, some of them to run",
      todo: "delete them again: fairlead agent delete",
      items: only(agents, present, label),
    },
    {
      what: "Agents that were started, stopped, moved or limited since, and are as they were before",
      todo: "do it again: fairlead agent stop, start, move, limits",
      items: changed(agents, present, { differ: (then, now) => then.terms !== now.terms, label }),
    },
    {
      what: "Agents that were made since, and are gone",
      todo: "make them again: fairlead agent create",
      items: only(present, agents, label),
    },
  ];
}

function reviewPeople(present: ReviewFacts, backup: ReviewFacts): readonly Recheck[] {
  const pair = (who: string, role: string): string => `${who} (${role})`;
  const named = (id: string, name: string): string => `${id} (${name})`;
  return [
    {
      what: "Members who were removed since, and are members again",
      todo: "remove them again: fairlead member remove",
      items: only(backup.members, present.members, pair),
    },
    {
      what: "Members who got another role since, and have the earlier one again",
      todo: "set it again: fairlead member set-role",
      items: changed(backup.members, present.members, { differ: (a, b) => a !== b, label: pair }),
    },
    {
      what: "Members who joined since, and are gone",
      todo: "invite them again: fairlead member invite",
      items: only(present.members, backup.members, pair),
    },
    {
      what: "Projects that were made since, and are gone",
      todo: "make them again: fairlead project create",
      items: only(present.projects, backup.projects, named),
    },
    {
      what: "Projects that were deleted since, and are there again",
      todo: "delete them again: fairlead project delete",
      items: only(backup.projects, present.projects, named),
    },
    {
      what: "People who came since, and are unknown now",
      todo: "invite them again",
      items: only(present.users, backup.users, named),
    },
  ];
}

function reviewSecrets(present: ReviewFacts, backup: ReviewFacts): readonly Recheck[] {
  const name = (id: string): string => id;
  const differ = (a: number, b: number): boolean => a !== b;
  const changedOf = (then: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): readonly string[] => [
    ...changed(then, now, { differ, label: name }),
    ...only(then, now, name),
    ...only(now, then, name),
  ];
  return [
    {
      what: "Secrets of nodes that were set or deleted since, and have their earlier value again",
      todo: "set or delete them again: fairlead node secret",
      items: changedOf(backup.secrets, present.secrets),
    },
    {
      what: "Secrets of agents that were set or deleted since, and have their earlier value again",
      todo: "set or delete them again: fairlead agent secret",
      items: changedOf(backup.agentSecrets, present.agentSecrets),
    },
    {
      what: "Providers that were changed, made or deleted since: their settings and credentials are the earlier ones",
      todo: "set them again: fairlead provider",
      items: [
        ...changed(backup.providers, present.providers, { differ, label: name }),
        ...only(backup.providers, present.providers, name),
        ...only(present.providers, backup.providers, name),
      ],
    },
  ];
}

const NANO = 1_000_000_000;

function reviewMoney({ balances: present }: ReviewFacts, { balances }: ReviewFacts): readonly Recheck[] {
  const dollars = (amount: number): string => `$${(amount / NANO).toFixed(6)}`;
  const projects = new Set([...present.keys(), ...balances.keys()]);
  const items = [...projects].flatMap((projectId) => {
    const [now, then] = [present.get(projectId) ?? 0, balances.get(projectId) ?? 0];
    return now === then ? [] : [`${projectId}: ${dollars(then)} again, was ${dollars(now)}`];
  });
  return [
    {
      what: "Balances: what was paid in or spent since is not in the ledger any more",
      todo: "enter payments again, and decide on what was spent: fairlead credits add (--take-back)",
      items,
    },
  ];
}

/** Things of one store that the other does not have. */
function only<T>(
  of: ReadonlyMap<string, T>,
  not: ReadonlyMap<string, T>,
  label: (id: string, value: T) => string,
): readonly string[] {
  return [...of].flatMap(([id, value]) => (not.has(id) ? [] : [label(id, value)]));
}

interface Changed<T> {
  readonly differ: (then: T, now: T) => boolean;
  readonly label: (id: string, value: T) => string;
}

function changed<T>(
  then: ReadonlyMap<string, T>,
  now: ReadonlyMap<string, T>,
  { differ, label }: Changed<T>,
): readonly string[] {
  return [...then].flatMap(([id, value]) => {
    const other = now.get(id);
    return other !== undefined && differ(value, other) ? [label(id, value)] : [];
  });
}
