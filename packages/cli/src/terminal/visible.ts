/** Control characters and characters that change the reading direction. */
const UNSEEN = /[\p{Cc}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;

/** Makes untrusted text, such as another user's project name, safe to print. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, "\ufffd");
}

/** The same for text with several lines. */
export function visibleLines(text: string): string {
  return text.replaceAll(UNSEEN, (character) => (character === "\n" || character === "\t" ? character : "\ufffd"));
}
