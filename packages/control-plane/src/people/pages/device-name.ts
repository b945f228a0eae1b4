/** What a person recognizes of a browser's `User-Agent`: `Firefox on Linux`. Pure. */

/** In this order: most browsers name others too, for old servers' sake. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Headless)?(?:Chrome|CriOS|Chromium)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:iPhone|iPod)\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\b(?:Macintosh|Mac OS X)\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

const MAX_NAME = 60;

/** @param userAgent a browser's, or a program's own name. */
export function deviceName(userAgent: string | null): string {
  if (userAgent === null || userAgent.trim() === "") return "Unknown device";
  if (!userAgent.startsWith("Mozilla/")) return userAgent.slice(0, MAX_NAME);
  const browser = nameIn(BROWSERS, userAgent);
  const system = nameIn(SYSTEMS, userAgent);
  if (browser === null) return system === null ? "Unknown browser" : `Browser on ${system}`;
  return system === null ? browser : `${browser} on ${system}`;
}

function nameIn(patterns: readonly (readonly [RegExp, string])[], userAgent: string): string | null {
  return patterns.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null;
}
