/** Preflight responses of both hosts. */

/** Requested header names, in the form that browsers send. */
const HEADER_NAMES = /^[a-z0-9!#$%&'*+.^_`|~-]+(\s*,\s*[a-z0-9!#$%&'*+.^_`|~-]+)*$/i;
const MOST_ASKED = 2048;

/** How long browsers cache the response. */
export const PREFLIGHT_SECONDS = "600";

/**
 * SDKs add more headers with each version. Requests carry no browser credentials, so any header is safe.
 * @param asked the header `access-control-request-headers`. @param otherwise used if that is not a list of names.
 */
export function allowedHeaders(asked: string | undefined, otherwise: string): string {
  return asked !== undefined && asked.length <= MOST_ASKED && HEADER_NAMES.test(asked) ? asked : otherwise;
}
