import type { ConfigWatch } from '../../config/watch.ts';
import type { WorkerReport } from '../foreground/worker-report.ts';
import type { FoundConfig } from './read-config.ts';

/** Whether somebody's terminal is at the other end: then SIGHUP says that it was closed, and else it asks to read again. */
export function onTerminal(): boolean {
  return [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
}

/** Keeps a worker at what its configuration says, and reports each change. Returns what ends it. */
export function followConfig(found: FoundConfig | undefined, report: WorkerReport): () => void {
  let watching: ConfigWatch | undefined;
  let over = false;
  const again = () => {
    if (watching) void watching.reload();
    // One that is not watched yet is read when that begins.
    else if (!found) report.configured(undefined);
  };
  if (!onTerminal()) process.on('SIGHUP', again);
  if (found?.registry) {
    const { path, registry } = found;
    void import('../../config/watch.ts').then(({ watchConfig }) => {
      if (over) return;
      watching = watchConfig(path, registry, {
        onReload: (config) => report.configured(config),
        onRefused: (error) => report.configRefused(error),
      });
      report.configured(registry.config);
    });
  }
  return () => {
    over = true;
    process.off('SIGHUP', again);
    watching?.close();
  };
}
