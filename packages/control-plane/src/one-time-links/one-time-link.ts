import { createHash } from "node:crypto";
import type { Role } from "@fairlead/protocol/resources";
import { ONE_TIME_LINK_PREFIX } from "../auth/credential-prefixes.ts";

/** Links that let somebody in once: what they are for, and the form of their tokens. Pure. */

export const LINK_PURPOSES = ["set_up", "reset", "invitation"] as const;
export type LinkPurpose = (typeof LINK_PURPOSES)[number];

export interface OneTimeLinkRecord {
  readonly id: string;
  readonly purpose: LinkPurpose;
  /** Whom an invitation is for, in lower case; null elsewhere. */
  readonly email: string | null;
  /** Whose password a reset link sets; null elsewhere. */
  readonly userId: string | null;
  /** Where an invitation leads, and as what; null elsewhere. */
  readonly projectId: string | null;
  readonly role: Role | null;
  /** The user who made it; null: the operator of the machine. */
  readonly createdBy: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The user who spent it. */
  readonly usedBy: string | null;
  readonly usedAt: number | null;
  readonly revokedAt: number | null;
}

/** What it lets whom do, as one text: there is at most one link with the same subject. */
export function linkSubject(link: Pick<OneTimeLinkRecord, "purpose" | "userId" | "projectId" | "email">): string {
  const { purpose, userId, projectId, email } = link;
  return [purpose, userId ?? "", projectId ?? "", email ?? ""].join(" ");
}

/** 256 bits. */
const TOKEN_BYTES = 32;
const TOKEN_FORM = new RegExp(`^${ONE_TIME_LINK_PREFIX}[\\w-]{43}$`);

/** @param randomBytes n bytes of good randomness. */
export function makeLinkToken(randomBytes: (n: number) => Uint8Array): string {
  return ONE_TIME_LINK_PREFIX + Buffer.from(randomBytes(TOKEN_BYTES)).toString("base64url");
}

/** Whether a text has the form of a token; anything else is not worth a look into the store. */
export function isLinkToken(text: string): boolean {
  return TOKEN_FORM.test(text);
}

/** What is stored of a token: its SHA-256 (hex). */
export function hashLinkToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Whether it would still let somebody in. */
export function isOpenLink(link: OneTimeLinkRecord, now: number): boolean {
  return link.usedAt === null && link.revokedAt === null && link.expiresAt > now;
}

const PATHS: Readonly<Record<LinkPurpose, string>> = {
  set_up: "/set-up",
  reset: "/reset",
  invitation: "/invitations",
};

/** Where the link's page is. @param publicUrl of the platform host. */
export function linkUrl(publicUrl: string, purpose: LinkPurpose, token: string): string {
  return `${publicUrl}${PATHS[purpose]}/${token}`;
}

/** `b…@example.org`: enough for its owner to know it by, for whoever else holds the link. */
export function maskedEmail(email: string): string {
  const at = email.lastIndexOf("@");
  const [first = ""] = /^./u.exec(email) ?? [];
  return `${first}…${at < 0 ? "" : email.slice(at)}`;
}
