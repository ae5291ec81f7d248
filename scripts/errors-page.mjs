// What docs/reference/errors.md says, from the table of error codes.
//   npm run classify:docs

/** The page as Markdown. */
export function errorsPage(errors) {
  const parts = Object.entries(errors).map(
    ([code, { title, cause, next }]) => `## ${code}\n\n${title}.\n\n- **Cause**: ${cause}\n- **Next step**: ${next}\n`,
  );
  return `${INTRODUCTION}\n${parts.join('\n')}`;
}

const INTRODUCTION = `# Errors

<!-- Made by \`npm run classify:docs\` from src/error-codes.ts. Change it there. -->

Every error of Holdfast is a \`HoldfastError\` with a \`code\`. Programs branch on the code; the message says what happened and what to do, and may
change. With \`--json\` the command line prints the same codes. Failures of tasks have [reasons](reasons.md) instead.
`;
