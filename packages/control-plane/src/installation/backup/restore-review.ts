/** Lists what a restore reverted, so that the operator can review it. Pure. */

/** The compared facts of a store; each map is keyed by id or name. */
export interface ReviewFacts {
  readonly projects: ReadonlyMap<string, string>;
  readonly users: ReadonlyMap<string, string>;
  /** `<project> <user>` → role. */
  readonly members: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, KeyFacts>;
  readonly nodes: ReadonlyMap<string, NodeFacts>;
  /** `<node> <name>` → when it was last set. Excludes deleted ones. */
  readonly secrets: ReadonlyMap<string, number>;
  readonly agents: ReadonlyMap<string, AgentFacts>;
  /** `<agent> <name>`, as for nodes. */
  readonly agentSecrets: ReadonlyMap<string, number>;
  /** `<project> <name>` → when it was last changed. */
  readonly providers: ReadonlyMap<string, number>;
  /** Nano-dollars by project. */
  readonly balances: ReadonlyMap<string, number>;
  /** The signing key of tokens. */
  readonly signingKeyId: string;
}

export interface KeyFacts {
  readonly name: string;
  readonly projectId: string;
  readonly secretHash: string;
  /** State, expiry and limits as one string. */
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
  /** State, node and limits as one string. */
  readonly terms: string;
}

/** One kind of finding. */
export interface Recheck {
  /** What differs since the backup, as the beginning of a sentence: `Keys deleted since`. */
  readonly what: string;
  readonly todo: string;
  readonly items: readonly string[];
}

/** @param present the replaced store. @param backup the restored store. @returns only kinds with findings. */
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
      what: "Project keys deleted since the backup, which work again",
      todo: "delete them again immediately: fairlead key delete",
      items: only(keys, present, label),
    },
    {
      what: "Project keys rotated since the backup: the old value works again, the new one does not",
      todo: "rotate them again and distribute the new values: fairlead key rotate",
      items: changed(keys, present, { differ: (a, b) => a.secretHash !== b.secretHash, label }),
    },
    {
      what: "Project keys whose state or limits changed since the backup",
      todo: "change them again: fairlead key update",
      items: changed(keys, present, { differ: (a, b) => a.terms !== b.terms, label }),
    },
    {
      what: "Project keys created since the backup, which no longer work",
      todo: "create new ones: fairlead key create",
      items: only(present, keys, label),
    },
    {
      what: "The token signing key was rotated since the backup; the old key is in use again",
      todo: "if it was rotated because of a leak: fairlead admin rotate-signing-key",
      items: signingKeyId === backup.signingKeyId ? [] : [`${backup.signingKeyId} instead of ${signingKeyId}`],
    },
  ];
}

function reviewNodes({ nodes: present }: ReviewFacts, { nodes }: ReviewFacts): readonly Recheck[] {
  const label = (id: string, { name, projectId }: NodeFacts): string => `${id} (${name}) of ${projectId}`;
  return [
    {
      what: "Nodes enrolled since the backup, or enrolled again with another key: their daemons are rejected",
      todo: "issue a new bootstrap token for each machine: fairlead node bootstrap-token",
      items: changed(nodes, present, { differ: (then, now) => then.signingKey !== now.signingKey, label }),
    },
    {
      what: "Nodes created since the backup, which no longer exist",
      todo: "create them again and enroll their machines: fairlead node create",
      items: only(present, nodes, label),
    },
    {
      what: "Nodes deleted since the backup, which exist again",
      todo: "delete them again: fairlead node delete",
      items: only(nodes, present, label),
    },
  ];
}

function reviewAgents({ agents: present }: ReviewFacts, { agents }: ReviewFacts): readonly Recheck[] {
  const label = (id: string, { name, projectId }: AgentFacts): string => `${id} (${name}) of ${projectId}`;
  return [
    {
      what: "Agents deleted since the backup, which exist again and may run",
      todo: "delete them again: fairlead agent delete",
      items: only(agents, present, label),
    },
    {
      what: "Agents started, stopped, moved or limited since the backup, which are in their old state again",
      todo: "repeat the change: fairlead agent stop, start, move, limits",
      items: changed(agents, present, { differ: (then, now) => then.terms !== now.terms, label }),
    },
    {
      what: "Agents created since the backup, which no longer exist",
      todo: "create them again: fairlead agent create",
      items: only(present, agents, label),
    },
  ];
}

function reviewPeople(present: ReviewFacts, backup: ReviewFacts): readonly Recheck[] {
  const pair = (who: string, role: string): string => `${who} (${role})`;
  const named = (id: string, name: string): string => `${id} (${name})`;
  return [
    {
      what: "Members removed since the backup, who are members again",
      todo: "remove them again: fairlead member remove",
      items: only(backup.members, present.members, pair),
    },
    {
      what: "Members whose role changed since the backup, who have their old role again",
      todo: "set it again: fairlead member set-role",
      items: changed(backup.members, present.members, { differ: (a, b) => a !== b, label: pair }),
    },
    {
      what: "Members who joined since the backup, who are no longer members",
      todo: "invite them again: fairlead member invite",
      items: only(present.members, backup.members, pair),
    },
    {
      what: "Projects created since the backup, which no longer exist",
      todo: "create them again: fairlead project create",
      items: only(present.projects, backup.projects, named),
    },
    {
      what: "Projects deleted since the backup, which exist again",
      todo: "delete them again: fairlead project delete",
      items: only(backup.projects, present.projects, named),
    },
    {
      what: "Users created since the backup, who no longer exist",
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
      what: "Node secrets set or deleted since the backup, which have their old value again",
      todo: "set or delete them again: fairlead node secret",
      items: changedOf(backup.secrets, present.secrets),
    },
    {
      what: "Agent secrets set or deleted since the backup, which have their old value again",
      todo: "set or delete them again: fairlead agent secret",
      items: changedOf(backup.agentSecrets, present.agentSecrets),
    },
    {
      what: "Providers created, changed or deleted since the backup, which have their old settings and credentials again",
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
    return now === then ? [] : [`${projectId}: now ${dollars(then)}, before the restore ${dollars(now)}`];
  });
  return [
    {
      what: "Balances: payments and spending since the backup are no longer in the ledger",
      todo: "enter payments again, and decide how to handle the spending: fairlead credits add (--take-back)",
      items,
    },
  ];
}

/** Items that only one of the stores has. */
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
