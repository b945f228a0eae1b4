import { hash, parseOptions, verify } from "@node-rs/argon2";
import { HashingLine } from "./hashing-line.ts";

/** argon2id with OWASP's first recommendation: 19 MiB, two passes, one lane. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

export interface PasswordCheck {
  readonly right: boolean;
  /** The hash uses older parameters and should be replaced while the password is available. */
  readonly outdated: boolean;
}

/** Hashes passwords. Checks take equally long whether or not a hash exists. */
export class PasswordHasher {
  readonly #nobodys: Promise<string>;
  readonly #line: HashingLine;
  readonly #verify: typeof verify;

  /** @param unguessable a random text; passwords of unknown users are checked against its hash. */
  constructor(unguessable: string, line = new HashingLine(), verifier: typeof verify = verify) {
    this.#nobodys = hash(unguessable, PARAMETERS);
    this.#line = line;
    this.#verify = verifier;
  }

  /** @param address the client's. @throws DomainError `overloaded` */
  async hash(password: string, address: string): Promise<string> {
    return this.#line.run(address, () => hash(normalized(password), PARAMETERS));
  }

  /** @param stored null if the user is unknown or has no password. @throws DomainError `overloaded` */
  async check(password: string, stored: string | null, address: string): Promise<PasswordCheck> {
    const against = stored ?? (await this.#nobodys);
    const right = await this.#line.run(address, () => this.#verify(against, normalized(password)));
    return { right: right && stored !== null, outdated: stored !== null && isOutdated(stored) };
  }
}

/** Different keyboards can encode the same characters differently (NIST SP 800-63B §3.1.1.2). */
function normalized(password: string): string {
  return password.normalize("NFKC");
}

function isOutdated(stored: string): boolean {
  const { memoryCost, timeCost, parallelism } = parseOptions(stored);
  return (
    memoryCost !== PARAMETERS.memoryCost || timeCost !== PARAMETERS.timeCost || parallelism !== PARAMETERS.parallelism
  );
}
