/** Whether a palette's entry fits what was typed: all words, in any order, or the first letters. Smaller is better; null does not fit. */
export function fit(title: string, typed: string): number | null {
  const text = title.toLowerCase();
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return 0;
  let score = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) return letters(text, words.join(''));
    score += at === 0 ? 0 : /[\s/.-]/.test(text[at - 1] ?? '') ? 1 : 3;
  }
  return score + text.length / 1000;
}

function letters(text: string, typed: string): number | null {
  let at = 0;
  for (const letter of typed) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return null;
  }
  return typed.length > 1 ? 10 + text.length / 1000 : null;
}
