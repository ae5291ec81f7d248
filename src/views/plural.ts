/** `1 task runs`, `412 tasks run`, `no tasks run`. */
export function plural(count: number, one: string, more: string): string {
  if (count === 1) return `1 ${one}`;
  return `${count === 0 ? 'no' : count} ${more}`;
}

/** `1 task`, `12,400 tasks`, `0 tasks`: a count as the language of the reader writes it. */
export function counted(count: number, one: string, more: string): string {
  return `${count.toLocaleString()} ${count === 1 ? one : more}`;
}

/** With a capital letter, to begin a sentence. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
