import type { Assets } from "./assets.ts";
import { type Html, html } from "./html.ts";
import { brandIcon } from "./icon.ts";

/** What a page has to say; the layout around it is the same everywhere. */
export interface Page {
  /** The browser's tab and the page's one heading. */
  readonly title: string;
  readonly body: Html;
  /** For pages that list things. */
  readonly wide?: boolean;
  /** Where the browser goes at once, without a click. */
  readonly next?: string;
}

export interface Surroundings {
  readonly assets: Assets;
  readonly signedIn: boolean;
}

/** A whole document. */
export function layout(page: Page, { assets, signedIn }: Surroundings): string {
  const document = html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="robots" content="noindex">
  ${page.next !== undefined && html`<meta http-equiv="refresh" content="0; url=${page.next}">`}
  <title>${page.title} · Fairlead</title>
  <link rel="stylesheet" href="${assets.stylesheet.path}">
  <link rel="icon" type="image/svg+xml" href="${assets.icon.path}">
</head>
<body${page.wide === true && html` class="wide"`}>
  <header>
    <a class="brand" href="/">${brandIcon}Fairlead</a>
    ${signedIn && html`<nav aria-label="Account"><a href="/account">Account</a></nav>`}
  </header>
  <main>
    <h1>${page.title}</h1>
    ${page.body}
  </main>
</body>
</html>
`;
  return document.toString();
}
