/** A name of ours as it stands in JSON: `max_attempts` for `maxAttempts`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
