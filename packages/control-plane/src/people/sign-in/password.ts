import { DomainError } from "@fairlead/protocol/errors";

/** Password rules. Pure. */

export const PASSWORD_MIN = 10;
export const PASSWORD_MAX = 256;

/** Common passwords, without trailing digits and signs. */
const OBVIOUS = new Set(
  (
    "password passwort passphrase letmein welcome iloveyou trustno changeme changeit secret administrator admin adminadmin root " +
    "qwerty qwertyuiop qwertz asdfghjkl zxcvbnm abcdefghij abcdefghijkl football baseball superman batman dragon monkey sunshine " +
    "princess master fairlead fairleadadmin default test testtest testing guest login user username computer internet"
  ).split(" "),
);

/** @throws DomainError invalid_request with `param: "password"` and a message for the user. */
export function refuseWeakPassword(password: string, email: string): void {
  const reason = weakness(password, email.toLowerCase());
  if (reason !== null) throw new DomainError("invalid_request", reason, { param: "password" });
}

function weakness(password: string, email: string): string | null {
  const length = Array.from(password).length;
  if (length < PASSWORD_MIN) return `The password must have at least ${PASSWORD_MIN} characters.`;
  if (length > PASSWORD_MAX) return `The password must have at most ${PASSWORD_MAX} characters.`;
  const lower = password.toLowerCase();
  if (lower === email || lower === email.split("@")[0]) return "The password must not be your email address.";
  if (isObvious(lower)) return "This password is too common. Choose another one.";
  return null;
}

function isObvious(lower: string): boolean {
  if (new Set(lower).size < 4 || isRun(lower)) return true;
  const plain = lower.replaceAll("0", "o").replaceAll("@", "a").replaceAll("$", "s");
  return [lower, plain].some((text) => OBVIOUS.has(upToLastLetter(text)));
}

function upToLastLetter(text: string): string {
  const characters = Array.from(text);
  const last = characters.findLastIndex((character) => /\p{L}/u.test(character));
  return characters.slice(0, last + 1).join("");
}

const DIGITS_ROUND = ["01234567890123456789", "98765432109876543210"];

/** Sequences such as `0123456789`, in both directions. */
function isRun(text: string): boolean {
  const steps = new Set(Array.from(text.slice(1), (letter, i) => letter.charCodeAt(0) - text.charCodeAt(i)));
  return steps.size === 1 || DIGITS_ROUND.some((digits) => digits.includes(text));
}
