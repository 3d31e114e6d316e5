// Texts come from anywhere, and may be of any length: nobody reads, and no browser lays out well, a megabyte in one line.

const LONGEST = 2000;

/** The beginning of a text, with a word about how much is left out. */
export function beginning(text: string, longest = LONGEST): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}… (${(text.length - longest).toLocaleString('en')} more characters)`;
}
