/** @returns the token of `Authorization: Bearer <token>`, or null for a missing or another header. */
export function bearerToken(authorization: string | undefined): string | null {
  const match = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization ?? "");
  return match?.[1] ?? null;
}
