import { AsyncLocalStorage } from "node:async_hooks";
import { kyselyAdapter } from "@better-auth/kysely-adapter";
import type { BetterAuthOptions, DBAdapter } from "better-auth";
import type { Kysely } from "kysely";
import type { Database } from "../../../installation/db/tables/schema.ts";

/** The context of one call into the sign-in library. */
export interface LibraryCall {
  /** The transaction of the library's and our statements. */
  readonly transaction: Kysely<Database>;
  /** The session that an access token is signed for. */
  readonly sessionId: string;
  /** The created device code, which is stored as a hash. */
  deviceCode: string | null;
  /** The user that an access token was signed for. */
  grantedTo: { readonly userId: string; readonly clientId: string } | null;
  /** The first failed statement. The library reports some store failures as caller errors. */
  fault: { readonly error: unknown } | null;
}

/**
 * Runs the sign-in library inside our transactions, so that a sign-in, its session and its audit record are one write.
 * Code inside a call must use its transaction: SQLite has one connection, which the call holds.
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
   * @param sessionId for an access token of a session. @throws the store's error, whatever the library made of it
   */
  async run<T>(work: (call: LibraryCall) => Promise<T>, sessionId = ""): Promise<T> {
    return this.#db.transaction().execute((transaction) => this.#within({ transaction, sessionId }, work));
  }

  /** The same without a transaction, for reads. */
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

  /** The current call. */
  current(): LibraryCall {
    const call = this.#current.getStore();
    if (!call) throw new Error("the sign-in library was used outside of a call");
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

/** `sqlite` on PostgreSQL too: both store dates as ISO text and booleans as integers (decision 0008). */
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
