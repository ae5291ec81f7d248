// The second process: it runs the tasks until it gets a signal, and lets those that run come to their end.
import { openTasks } from './shop.ts';

const holdfast = await openTasks();
holdfast.work({ concurrency: 50 });
process.once('SIGTERM', () => void holdfast.close());
