import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/**
 * Ends a run with lines that a machine can read, after everything else was printed: one for each test that failed, and
 * the counts, `12 passed, 0 failed`.
 */
export class SummaryReporter implements Reporter {
  private counts = { passed: 0, failed: 0, skipped: 0 };
  private failures: string[] = [];

  onInit(): void {
    process.on('exit', (code) => {
      const { passed, failed, skipped } = this.counts;
      // A run that broke outside its tests (no test found, a build, a teardown) has not passed either.
      const broken = failed === 0 && code !== 0 ? 1 : failed;
      const counts = `${passed} passed, ${broken} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
      process.stdout.write([...this.failures, counts, ''].join('\n'));
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    // What is neither passed nor skipped failed or never ended. A group's own errors are those of its imports and hooks.
    const failed = tests.filter((test) => !['passed', 'skipped'].includes(test.result().state));
    const brokenGroups = groups.filter((group) => group.errors().length > 0);
    const skipped = tests.filter((test) => test.result().state === 'skipped').length;
    this.failures = [
      ...failed.map((test) => line(`${test.module.relativeModuleId} > ${test.fullName}`, test.result().errors?.[0])),
      ...brokenGroups.map((group) =>
        line(group.type === 'module' ? group.relativeModuleId : group.fullName, group.errors()[0]),
      ),
      ...unhandled.map((error) => line('outside of the tests', error)),
    ];
    const passed = tests.length - failed.length - skipped;
    this.counts = { passed, skipped, failed: this.failures.length };
  }
}

function line(place: string, error: { message?: string } | undefined): string {
  const [message = ''] = (error?.message ?? 'it never ended').split('\n');
  return `failed test: ${place}: ${message.slice(0, 300)}`;
}
