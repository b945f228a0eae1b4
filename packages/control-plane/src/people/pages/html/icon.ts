import { type Html, html } from "./html.ts";

/** A fairlead is the ring on a ship's deck that guides its ropes. */
const shape = html`<rect width="32" height="32" rx="8" fill="#0b5e8a"/><g fill="none" stroke="#fff" stroke-linecap="round"><circle cx="16" cy="16" r="6" stroke-width="3.5"/><path d="M2 21.5c4 0 5-5.5 8-5.5M22 16c3 0 4-5.5 8-5.5" stroke-width="2.5"/></g>`;

/** Beside the name, which says it already. */
export const brandIcon: Html = html`<svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">${shape}</svg>`;

/** In the browser's tab. */
export const TAB_ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${shape.toString()}</svg>`;
