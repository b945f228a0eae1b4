import { DomainError } from "@fairlead/protocol/errors";

/** Which passwords are taken. Pure. */

export const PASSWORD_MIN = 10;
export const PASSWORD_MAX = 256;

/** What guessers try first, without the digits and signs that people put at the end of them. */
const OBVIOUS = new Set(
  (
    "password passwort passphrase letmein welcome iloveyou trustno changeme changeit secret administrator admin adminadmin root " +
    "qwerty qwertyuiop qwertz asdfghjkl zxcvbnm abcdefghij abcdefghijkl football baseball superman batman dragon monkey sunshine " +
    "princess master fairlead fairleadadmin default test testtest testing guest login user username computer internet"
  ).split(" "),
);

/** @throws DomainError invalid_request with `param: "password"` and a sentence for the person. */
export function refuseWeakPassword(password: string, email: string): void {
  const reason = weakness(password, email.toLowerCase());
  if (reason !== null) throw new DomainError("invalid_request", reason, { param: "password" });
}

function weakness(password: string, email: string): string | null {
  const length = Array.from(password).length;
  if (length < PASSWORD_MIN) return `A password has at least ${PASSWORD_MIN} characters.`;
  if (length > PASSWORD_MAX) return `A password has at most ${PASSWORD_MAX} characters.`;
  const lower = password.toLowerCase();
  if (lower === email || lower === email.split("@")[0]) return "The password must not be your e-mail address.";
  if (isObvious(lower)) return "This password is among the first that others would try; choose another.";
  return null;
}

function isObvious(lower: string): boolean {
  if (new Set(lower).size < 4 || isRun(lower)) return true;
  const plain = lower.replaceAll("0", "o").replaceAll("@", "a").replaceAll("$", "s");
  return [lower, plain].some((text) => OBVIOUS.has(text.replace(/[^\p{L}]+$/u, "")));
}

const DIGITS_ROUND = ["01234567890123456789", "98765432109876543210"];

/** `0123456789`, `abcdefghij`, or the same backwards. */
function isRun(text: string): boolean {
  const steps = new Set(Array.from(text.slice(1), (letter, i) => letter.charCodeAt(0) - text.charCodeAt(i)));
  return steps.size === 1 || DIGITS_ROUND.some((digits) => digits.includes(text));
}
