import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Short files whose tests take longest, the longest first. Vitest goes by the size of a file. */
const LONGEST = [
  'test/contract/postgres.test.ts',
  'test/who-pays/postgres.test.ts',
  'test/who-pays/sqlite.test.ts',
  'test/contract/sqlite.test.ts',
  'test/process/hostile.test.ts',
  'test/docs/app.test.ts',
  'test/docs/start.test.ts',
  'test/docs/console.test.ts',
];

/** Begins with the files that take longest: begun last, they would run alone while the other processors have nothing to do. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => groupOf(a) - groupOf(b) || rankOf(a) - rankOf(b));
  }
}

function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder;
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = LONGEST.findIndex((name) => moduleId.endsWith(name));
  return rank === -1 ? LONGEST.length : rank;
}
