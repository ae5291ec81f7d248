/**
 * A name as one segment of the path of an address. Browsers and servers take `.` and `..` for folders, also when they are encoded, so
 * these two names get a `~` before them; so does a name that would look like that.
 */
export function pathSegment(name: string): string {
  return encodeURIComponent(/^~*\.\.?$/.test(name) ? `~${name}` : name);
}

/** The name of a decoded segment. */
export function nameInPath(segment: string): string {
  return /^~+\.\.?$/.test(segment) ? segment.slice(1) : segment;
}
