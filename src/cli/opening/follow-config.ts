import type { ConfigWatch } from '../../config/watch.ts';
import type { WorkerReport } from '../foreground/worker-report.ts';
import type { FoundConfig } from './read-config.ts';

/** Whether a terminal is connected. Then SIGHUP means that it was closed; otherwise it asks to read the configuration again. */
export function onTerminal(): boolean {
  return [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);
}

/** Applies each change of the configuration to a worker and reports it. Returns a function that ends this. */
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
