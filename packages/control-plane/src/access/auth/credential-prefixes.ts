/** Project keys begin so: scanners find leaked ones by it, and hosts can say which host a stray credential belongs to. */
export const PROJECT_KEY_PREFIX = "flk_";
/** Tokens of set-up, reset and invitation links begin so. */
export const ONE_TIME_LINK_PREFIX = "fli_";
