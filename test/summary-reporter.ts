import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Ends a run with a line that a machine can read, after everything else was printed: `12 passed, 0 failed`. */
export class SummaryReporter implements Reporter {
  private counts = { passed: 0, failed: 0, skipped: 0 };

  onInit(): void {
    process.on('exit', (code) => {
      const { passed, failed, skipped } = this.counts;
      // A run that broke outside its tests (no test found, a build, a teardown) has not passed either.
      const broken = failed === 0 && code !== 0 ? 1 : failed;
      process.stdout.write(`${passed} passed, ${broken} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()]).map((test) => test.result().state);
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const passed = states.filter((state) => state === 'passed').length;
    const skipped = states.filter((state) => state === 'skipped').length;
    // What is neither passed nor skipped failed or never ended. A group's own errors are those of its imports and hooks.
    const brokenGroups = groups.filter((group) => group.errors().length > 0).length;
    this.counts = { passed, skipped, failed: states.length - passed - skipped + brokenGroups + unhandled.length };
  }
}
