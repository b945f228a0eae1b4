import * as fc from "fast-check";
import { ADDRESSES, type Attack } from "./attack.ts";
import { ISSUER_ID } from "./facts.ts";
import { openForm } from "./page-form.ts";
import { type Reply, replyArbitrary } from "./replies.ts";

/** An OIDC provider that people may sign in by, and what it replies when the server asks for its metadata. */

export interface IssuerMove {
  readonly reply: Reply;
  /** People who begin to sign in at the same time. */
  readonly parallel: number;
  readonly address: (typeof ADDRESSES)[number];
}

const one = (kind: Reply["kind"], amount: number): IssuerMove => ({
  reply: { kind, amount, seed: 1, drip: false },
  parallel: 4,
  address: ADDRESSES[1],
});

export const issuer: Attack<IssuerMove> = {
  name: "issuer",
  move: fc.record({
    reply: replyArbitrary,
    parallel: fc.integer({ min: 1, max: 20 }),
    address: fc.constantFrom(...ADDRESSES),
  }),
  known: {
    metadata: [
      one("nested-usage", 30_000_000),
      one("gzip-bomb", 60_000_000),
      one("silence", 1),
      one("many-headers", 200_000),
    ],
  },
  perform: async ({ reply, parallel, address }, ground) => {
    ground.issuer.always(reply);
    const form = await openForm(ground.facts.platformUrl, address);
    if (form === null) return;
    const each = Array.from({ length: parallel }, () => {
      ground.sent += 1;
      return form.post(`/sign-in/${ISSUER_ID}`, {});
    });
    await Promise.all(each);
  },
};
