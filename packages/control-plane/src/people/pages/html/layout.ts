import type { Assets } from "./assets.ts";
import { type Html, html } from "./html.ts";
import { brandIcon } from "./icon.ts";

/** A page's content; the layout is the same for all pages. */
export interface HtmlPage {
  /** The title of the browser tab and the only heading. */
  readonly title: string;
  readonly body: Html;
  /** For pages with lists. */
  readonly wide?: boolean;
  /** The browser goes here immediately, without a click. */
  readonly next?: string;
}

export interface Surroundings {
  readonly assets: Assets;
  readonly signedIn: boolean;
  /** Prefix of every path sent to the browser. */
  readonly publicPath: string;
}

/** Renders a complete document. */
export function layout(page: HtmlPage, { assets, signedIn, publicPath }: Surroundings): string {
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
  return withPublicPath(document.toString(), publicPath);
}

/**
 * Pages use paths as routes define them, and the prefix is added here. Only templates contain unescaped quotes, so no
 * other text can match these attributes.
 */
function withPublicPath(document: string, publicPath: string): string {
  if (publicPath === "") return document;
  return document.replaceAll(
    /(href="|action="|content="0; url=)\/(?!\/)/g,
    (_match, before) => `${before}${publicPath}/`,
  );
}
