/**
 * With `PROPERTY_SEED` in the environment all properties and random histories of a run are made from that seed; without it each run has
 * new ones. CI takes the seed from the files of the commit, so that each commit is tried with others, and a second run finds the same.
 */
const seed = Number(process.env.PROPERTY_SEED ?? Number.NaN);
if (Number.isInteger(seed)) {
  const { default: fc } = await import('fast-check');
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
}
