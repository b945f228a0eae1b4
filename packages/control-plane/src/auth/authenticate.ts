import type { PrincipalKind, PrincipalOf } from "./principal.ts";

/**
 * Who sent this `Authorization` header, if it is one of the kinds that may.
 * @throws DomainError `invalid_credential`, `expired_credential`; `unavailable` when it cannot be checked.
 */
export type Authenticate = <K extends PrincipalKind>(
  authorization: string | undefined,
  kinds: readonly K[],
) => Promise<PrincipalOf<K>>;
