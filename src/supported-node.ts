// Imported first by the entries of the package, so that an old Node is refused before it lacks a method somewhere else.
import { nodeProblem } from './node-version.ts';

const problem = nodeProblem();
if (problem !== undefined) throw new Error(problem);
