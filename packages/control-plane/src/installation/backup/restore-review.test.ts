import { describe, expect, test } from "vitest";
import { type ReviewFacts, reviewRestore } from "./restore-review.ts";

const key = { name: "one", projectId: "prj_1", secretHash: "a", terms: "[1]" };
const node = { name: "Box", projectId: "prj_1", signingKey: "{}" };
const agent = { name: "Bot", projectId: "prj_1", terms: "[1]" };
const then: ReviewFacts = {
  projects: new Map([["prj_1", "One"]]),
  users: new Map([["usr_1", "ann@example.org"]]),
  members: new Map([["prj_1 usr_1", "owner"]]),
  keys: new Map([["key_1", key]]),
  nodes: new Map([["nod_1", node]]),
  secrets: new Map([["nod_1 TOKEN", 1]]),
  agents: new Map([["agt_1", agent]]),
  agentSecrets: new Map([["agt_1 TOKEN", 1]]),
  providers: new Map([["prj_1 openai", 1]]),
  balances: new Map([["prj_1", 5_000_000_000]]),
  signingKeyId: "sgk_1",
};

/** @returns each kind's first words, with what is listed of it. */
function review(now: Partial<ReviewFacts>): Record<string, readonly string[]> {
  const found = reviewRestore({ ...then, ...now }, then);
  return Object.fromEntries(found.map(({ what, items }) => [what.split(/[:;,]/)[0] ?? "", items]));
}

describe("the review of a restore", () => {
  test("is empty when nothing has changed", () => {
    expect(review({})).toEqual({});
  });

  test("distinguishes keys deleted, created, rotated and changed since the backup", () => {
    expect(review({ keys: new Map() })).toEqual({
      "Project keys deleted since the backup": ["key_1 (one) of prj_1"],
    });
    expect(review({ keys: new Map([...then.keys, ["key_2", { ...key, name: "two" }]]) })).toEqual({
      "Project keys created since the backup": ["key_2 (two) of prj_1"],
    });
    expect(review({ keys: new Map([["key_1", { ...key, secretHash: "b" }]]) })).toEqual({
      "Project keys rotated since the backup": ["key_1 (one) of prj_1"],
    });
    expect(review({ keys: new Map([["key_1", { ...key, terms: "[0]" }]]) })).toEqual({
      "Project keys whose state or limits changed since the backup": ["key_1 (one) of prj_1"],
    });
  });

  test("lists nodes whose daemons will be rejected, and nodes that reappear", () => {
    expect(review({ nodes: new Map([["nod_1", { ...node, signingKey: "{other}" }]]) })).toEqual({
      "Nodes enrolled since the backup": ["nod_1 (Box) of prj_1"],
    });
    expect(review({ nodes: new Map([["nod_2", node]]) })).toEqual({
      "Nodes created since the backup": ["nod_2 (Box) of prj_1"],
      "Nodes deleted since the backup": ["nod_1 (Box) of prj_1"],
    });
  });

  test("lists agents that reappear, that return to their earlier state, and that disappear", () => {
    expect(review({ agents: new Map([["agt_2", agent]]) })).toEqual({
      "Agents deleted since the backup": ["agt_1 (Bot) of prj_1"],
      "Agents created since the backup": ["agt_2 (Bot) of prj_1"],
    });
    expect(review({ agents: new Map([["agt_1", { ...agent, terms: "[0]" }]]) })).toEqual({
      "Agents started": ["agt_1 (Bot) of prj_1"],
    });
  });

  test("lists members, people and projects, in both directions", () => {
    expect(review({ members: new Map([["prj_1 usr_1", "member"]]) })).toEqual({
      "Members whose role changed since the backup": ["prj_1 usr_1 (owner)"],
    });
    expect(review({ members: new Map([["prj_1 usr_2", "member"]]) })).toEqual({
      "Members removed since the backup": ["prj_1 usr_1 (owner)"],
      "Members who joined since the backup": ["prj_1 usr_2 (member)"],
    });
    expect(review({ projects: new Map([["prj_2", "Two"]]), users: new Map([["usr_2", "b@example.org"]]) })).toEqual({
      "Projects created since the backup": ["prj_2 (Two)"],
      "Projects deleted since the backup": ["prj_1 (One)"],
      "Users created since the backup": ["usr_2 (b@example.org)"],
    });
  });

  test("lists secrets, providers and the signing key", () => {
    const now = {
      secrets: new Map([["nod_1 TOKEN", 2]]),
      agentSecrets: new Map([["agt_1 OTHER", 1]]),
      providers: new Map<string, number>(),
      signingKeyId: "sgk_2",
    };
    expect(review(now)).toEqual({
      "The token signing key was rotated since the backup": ["sgk_1 instead of sgk_2"],
      "Node secrets set or deleted since the backup": ["nod_1 TOKEN"],
      "Agent secrets set or deleted since the backup": ["agt_1 TOKEN", "agt_1 OTHER"],
      "Providers created": ["prj_1 openai"],
    });
  });

  test("states both balances where they differ, and counts a missing one as zero", () => {
    expect(review({ balances: new Map([["prj_2", 1]]) })).toEqual({
      Balances: [
        "prj_2: now $0.000000, before the restore $0.000000",
        "prj_1: now $5.000000, before the restore $0.000000",
      ],
    });
  });
});
