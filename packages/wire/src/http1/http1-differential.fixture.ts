import fc from "fast-check";
import { expect } from "vitest";
import { type GeneratedResponse, generatedResponse } from "./http1-messages.fixture.ts";
import { readByFairlead, readByNode } from "./http1-readers.fixture.ts";

export interface Differential {
  readonly seed: number;
  readonly messages: number;
}

/** Reads generated responses with Node's reader too. @returns how many both accepted. Throws, shrunk, where ours accepts what Node's refuses. */
export async function expectNeverMoreLenient({ seed, messages }: Differential): Promise<number> {
  let accepted = 0;
  const property = fc.asyncProperty(generatedResponse, async (response) => {
    if (await isAcceptedByBoth(response)) accepted += 1;
  });
  await fc.assert(property, { seed, numRuns: messages });
  return accepted;
}

async function isAcceptedByBoth({ pieces, forHead }: GeneratedResponse): Promise<boolean> {
  const ours = readByFairlead(pieces, forHead);
  if (ours.head === null) return false;
  const nodes = await readByNode(pieces, forHead);
  expect(ours.head).toEqual(nodes.head);
  if (!ours.isWhole) return false;
  expect(ours).toEqual(nodes);
  return true;
}
