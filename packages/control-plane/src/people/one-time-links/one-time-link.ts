import { createHash } from "node:crypto";
import type { Role } from "@fairlead/protocol/resources";
import { ONE_TIME_LINK_PREFIX } from "../../access/auth/credential-prefixes.ts";

/** One-time sign-in links: purposes and token format. Pure. */

export const LINK_PURPOSES = ["set_up", "reset", "invitation"] as const;
export type LinkPurpose = (typeof LINK_PURPOSES)[number];

export interface OneTimeLinkRecord {
  readonly id: string;
  readonly purpose: LinkPurpose;
  /** The invited user's address in lower case; null for other purposes. */
  readonly email: string | null;
  /** The user whose password a reset link sets; null for other purposes. */
  readonly userId: string | null;
  /** The project and role that an invitation grants; null for other purposes. */
  readonly projectId: string | null;
  readonly role: Role | null;
  /** The user who created it; null for the operator on the machine. */
  readonly createdBy: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The user who redeemed it. */
  readonly usedBy: string | null;
  readonly usedAt: number | null;
  readonly revokedAt: number | null;
}

/** Purpose and target as one text. At most one link exists per subject. */
export function linkSubject(link: Pick<OneTimeLinkRecord, "purpose" | "userId" | "projectId" | "email">): string {
  const { purpose, userId, projectId, email } = link;
  return [purpose, userId ?? "", projectId ?? "", email ?? ""].join(" ");
}

/** 256 bits. */
const TOKEN_BYTES = 32;
const TOKEN_FORM = new RegExp(`^${ONE_TIME_LINK_PREFIX}[\\w-]{43}$`);

/** @param randomBytes n cryptographically random bytes. */
export function makeLinkToken(randomBytes: (n: number) => Uint8Array): string {
  return ONE_TIME_LINK_PREFIX + Buffer.from(randomBytes(TOKEN_BYTES)).toString("base64url");
}

/** Whether the text has a token's format; other texts are not looked up. */
export function isLinkToken(text: string): boolean {
  return TOKEN_FORM.test(text);
}

/** The stored form of a token: its SHA-256 (hex). */
export function hashLinkToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Whether the link can still be used. */
export function isOpenLink(link: OneTimeLinkRecord, now: number): boolean {
  return link.usedAt === null && link.revokedAt === null && link.expiresAt > now;
}

const PATHS: Readonly<Record<LinkPurpose, string>> = {
  set_up: "/set-up",
  reset: "/reset",
  invitation: "/invitations",
};

/** The URL of the link's page. @param publicUrl of the platform host. */
export function linkUrl(publicUrl: string, purpose: LinkPurpose, token: string): string {
  return `${publicUrl}${PATHS[purpose]}/${token}`;
}

/** `b…@example.org`: recognizable to its owner, but not to anyone else who has the link. */
export function maskedEmail(email: string): string {
  const at = email.lastIndexOf("@");
  const [first = ""] = /^./u.exec(email) ?? [];
  return `${first}…${at < 0 ? "" : email.slice(at)}`;
}
