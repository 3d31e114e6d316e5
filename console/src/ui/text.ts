// Texts come from anywhere, and may be of any length: nobody reads, and no browser lays out well, a megabyte in one line.

const LONGEST = 2000;

/** More than about so much does not fit into an input of one line. */
const ONE_LINE = 80;

/** Whether a text is edited in several lines. */
export const needsLines = (text: string): boolean => text.length > ONE_LINE || text.includes('\n');

/** The beginning of a text, with a word about how much is left out. */
export function beginning(text: string, longest = LONGEST): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}… (${(text.length - longest).toLocaleString('en')} more characters)`;
}

/** The name of many of a kind: WebServer, WebServers. */
export function pluralOf(kind: string): string {
  return /[^aeiou]y$/.test(kind) ? `${kind.slice(0, -1)}ies` : /(s|x|ch|sh)$/.test(kind) ? `${kind}es` : `${kind}s`;
}
