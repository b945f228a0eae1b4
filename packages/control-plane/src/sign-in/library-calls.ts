import { AsyncLocalStorage } from "node:async_hooks";
import { kyselyAdapter } from "@better-auth/kysely-adapter";
import type { BetterAuthOptions, DBAdapter } from "better-auth";
import type { Kysely } from "kysely";
import type { Database } from "../db/schema.ts";

/** One call into the sign-in library, and what our side of it has to know. */
export interface LibraryCall {
  /** Everything that the library reads and writes during the call, and what we add to it. */
  readonly transaction: Kysely<Database>;
  /** The session that an access token is signed for. */
  readonly sessionId: string;
  /** The device code that was made; it rests as a hash. */
  deviceCode: string | null;
  /** Whom an access token was signed for. */
  grantedTo: { readonly userId: string; readonly clientId: string } | null;
  /** The first statement that failed. The library answers some failures of the store as if the caller were wrong. */
  fault: { readonly error: unknown } | null;
}

/**
 * Lets the sign-in library work inside our transactions, so that a sign-in, its session and its audit record are one write.
 * Code that runs in a call must use the call's transaction: SQLite has one connection, and the call holds it.
 */
export class LibraryCalls {
  readonly #db: Kysely<Database>;
  readonly #current = new AsyncLocalStorage<LibraryCall>();

  constructor(db: Kysely<Database>) {
    this.#db = db;
  }

  /** For the library's option `database`. */
  readonly adapter = (options: BetterAuthOptions): DBAdapter => {
    const outside = adapterOn(this.#db, options);
    const inside = new WeakMap<Kysely<Database>, DBAdapter>();
    const following: DBAdapter = new Proxy(outside, {
      get: (_, name) => {
        const call = this.#current.getStore();
        if (name === "transaction") return async <T>(work: (adapter: DBAdapter) => Promise<T>) => work(following);
        if (!call) return Reflect.get(outside, name) as unknown;
        const adapter = inside.get(call.transaction) ?? adapterOn(call.transaction, options);
        inside.set(call.transaction, adapter);
        return noticing(call, Reflect.get(adapter, name));
      },
    });
    return following;
  };

  /**
   * Runs the work in one transaction.
   * @param sessionId for an access token, where the work is about one. @throws what the store threw, whatever the library made of it
   */
  async run<T>(work: (call: LibraryCall) => Promise<T>, sessionId = ""): Promise<T> {
    return this.#db.transaction().execute((transaction) => this.#within({ transaction, sessionId }, work));
  }

  /** The same without a transaction, for work that only reads. */
  async read<T>(work: () => Promise<T>): Promise<T> {
    return this.#within({ transaction: this.#db, sessionId: "" }, work);
  }

  async #within<T>(
    start: Pick<LibraryCall, "transaction" | "sessionId">,
    work: (call: LibraryCall) => Promise<T>,
  ): Promise<T> {
    const call: LibraryCall = { ...start, deviceCode: null, grantedTo: null, fault: null };
    const outcome = await this.#current.run(call, () => settled(work(call)));
    if (call.fault) throw call.fault.error;
    if ("error" in outcome) throw outcome.error;
    return outcome.value;
  }

  /** The call that is going on. */
  current(): LibraryCall {
    const call = this.#current.getStore();
    if (!call) throw new Error("the sign-in library acts outside of a call");
    return call;
  }
}

async function settled<T>(work: Promise<T>): Promise<{ readonly value: T } | { readonly error: unknown }> {
  try {
    return { value: await work };
  } catch (error) {
    return { error };
  }
}

/** `sqlite` on PostgreSQL too: dates rest as ISO text and booleans as integers on both (decision 0008). */
function adapterOn(db: Kysely<Database>, options: BetterAuthOptions): DBAdapter {
  return kyselyAdapter(db, { type: "sqlite" })(options);
}

function noticing(call: LibraryCall, part: unknown): unknown {
  if (typeof part !== "function") return part;
  return async (...input: unknown[]): Promise<unknown> => {
    try {
      return await Reflect.apply(part, undefined, input);
    } catch (error) {
      call.fault ??= { error };
      throw error;
    }
  };
}
