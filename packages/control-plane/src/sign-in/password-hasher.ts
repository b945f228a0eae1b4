import { hash, parseOptions, verify } from "@node-rs/argon2";

/** argon2id with the parameters that OWASP names first: 19 MiB, two passes, one lane. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;

export interface PasswordCheck {
  readonly right: boolean;
  /** The hash was made by other parameters than today's, and should be replaced while the password is at hand. */
  readonly outdated: boolean;
}

/** Hashes passwords, and checks them at the same cost whether or not there is anything to check against. */
export class PasswordHasher {
  readonly #nobodys: Promise<string>;
  readonly #verify: typeof verify;

  /** @param unguessable a text that nobody sends: a check for a user who is not there runs against its hash. */
  constructor(unguessable: string, verifier: typeof verify = verify) {
    this.#nobodys = hash(unguessable, PARAMETERS);
    this.#verify = verifier;
  }

  async hash(password: string): Promise<string> {
    return hash(normalized(password), PARAMETERS);
  }

  /** @param stored null where the user is unknown or has no password. */
  async check(password: string, stored: string | null): Promise<PasswordCheck> {
    const right = await this.#verify(stored ?? (await this.#nobodys), normalized(password));
    return { right: right && stored !== null, outdated: stored !== null && isOutdated(stored) };
  }
}

/** The same letters from another keyboard are the same password (NIST SP 800-63B §3.1.1.2). */
function normalized(password: string): string {
  return password.normalize("NFKC");
}

function isOutdated(stored: string): boolean {
  const { memoryCost, timeCost, parallelism } = parseOptions(stored);
  return (
    memoryCost !== PARAMETERS.memoryCost || timeCost !== PARAMETERS.timeCost || parallelism !== PARAMETERS.parallelism
  );
}
