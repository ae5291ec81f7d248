import type { Reporter, SerializedError, TestCase, TestModule, TestSuite, Vitest } from 'vitest/node';

/**
 * Ends a run with lines that a machine can read, after everything else was printed: one for each test that failed
 * or passed at the second try only, and the counts, `12 passed, 0 failed`.
 */
export class SummaryReporter implements Reporter {
  private counts = { passed: 0, failed: 0, skipped: 0 };
  private notes: string[] = [];
  /** Only tests whose names fit a pattern were asked for: the others are not counted as skipped. */
  private isSelection = false;

  onInit({ config }: Vitest): void {
    this.isSelection = config.testNamePattern !== undefined;
    process.on('exit', (code) => {
      const { passed, failed, skipped } = this.counts;
      // A run that broke outside its tests (no test found, a build, a teardown) has not passed either.
      const broken = failed === 0 && code !== 0 ? 1 : failed;
      const counts = `${passed} passed, ${broken} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
      process.stdout.write([...this.notes, counts, ''].join('\n'));
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    // What is neither passed nor skipped failed or never ended. A group's own errors are those of its imports and hooks.
    const failed = tests.filter((test) => !['passed', 'skipped'].includes(test.result().state));
    const brokenGroups = groups.filter((group) => group.errors().length > 0);
    const unasked = tests.filter((test) => test.result().state === 'skipped').length;
    const skipped = this.isSelection ? 0 : unasked;
    const flaky = tests.filter((test) => test.diagnostic()?.flaky === true);
    this.notes = [
      ...flaky.map((test) => line('passed at the second try', place(test), test.result().errors?.[0])),
      ...failed.map((test) => line('failed test', place(test), test.result().errors?.[0])),
      ...brokenGroups.map((group) => line('failed test', place(group), group.errors()[0])),
      ...unhandled.map((error) => line('failed test', 'outside of the tests', error)),
    ];
    const passed = tests.length - failed.length - unasked;
    this.counts = { passed, skipped, failed: failed.length + brokenGroups.length + unhandled.length };
  }
}

function place(test: TestCase | TestSuite | TestModule): string {
  return test.type === 'module' ? test.relativeModuleId : `${test.module.relativeModuleId} > ${test.fullName}`;
}

function line(what: string, where: string, error: { message?: string } | undefined): string {
  // Of a property the second line is its seed, and the third one what was found.
  const message = (error?.message ?? 'it never ended').split('\n').slice(0, 3).join(' ');
  return `${what}: ${where}: ${message.slice(0, 1_200)}`;
}
