/** Characters that move the cursor, colour the screen or turn the reading direction. */
const UNSEEN = /[\p{Cc}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;

/** Text from elsewhere as it may be shown: another person's project name must not repaint this person's terminal. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, "\ufffd");
}

/** The same for a text of several lines, such as an answer. */
export function visibleLines(text: string): string {
  return text.replaceAll(UNSEEN, (character) => (character === "\n" || character === "\t" ? character : "\ufffd"));
}
