const [LEAST_MAJOR, LEAST_MINOR] = [20, 19];

/** The sentence for a user whose Node is too old. Undefined if it is new enough. This must itself run on old versions of Node. */
export function nodeProblem(version: string = process.versions.node): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > LEAST_MAJOR || (major === LEAST_MAJOR && minor >= LEAST_MINOR)) return undefined;
  return `Holdfast needs Node ${LEAST_MAJOR}.${LEAST_MINOR} or later, and this is Node ${version}. Install a newer Node, such as the LTS version of https://nodejs.org, and try again.`;
}
