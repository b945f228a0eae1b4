/** How titles and texts are searched: in one spelling, as part of a word too, the same on both databases. Pure. */

/** What is kept of one text for searches. */
const MOST_CHARACTERS = 32_768;

/** One spelling of a text, in whatever capitals and widths it was written. PostgreSQL cannot hold a NUL. */
export function searchable(text: string): string {
  return text.slice(0, MOST_CHARACTERS).toWellFormed().normalize("NFKC").toLowerCase().replaceAll("\0", " ");
}

/** For `like … escape '!'`. */
export function likePattern(query: string): string {
  return `%${searchable(query).replaceAll(/[!%_]/g, (sign) => `!${sign}`)}%`;
}
