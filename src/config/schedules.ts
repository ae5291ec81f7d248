import { InvalidInputError } from '../errors.ts';
import { parseCron } from '../schedule/cron.ts';
import type { FileSchedule } from '../schedule/definition.ts';
import { MISSED, OVERLAPS } from '../schedule/turn.ts';
import type { Json } from '../task.ts';
import { HIGHEST_PRIORITY } from '../task.ts';
import { type Problems, quoted } from './problems.ts';
import { field, fields, flag, name, oneOf, type Shape, whole } from './shapes.ts';
import type { Node } from './source.ts';

/** Any value, as JSON. */
const JSON_VALUE: Shape<Json> = {
  schema: {},
  read: (node) => jsonOf(node),
};

function jsonOf(node: Node): Json {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(jsonOf);
  return Object.fromEntries(node.entries.map(({ name: member, value }) => [member, jsonOf(value)]));
}

const FIELDS = fields<FileSchedule>(
  'A schedule',
  {
    type: field(name(), 'The type of its tasks.'),
    input: field(JSON_VALUE, 'The input of its tasks.', { byDefault: null }),
    cron: field(
      name(),
      'When: minute, hour, day of the month, month, day of the week; six fields begin with seconds; or @hourly, @daily, @weekly, @monthly, @yearly.',
      { examples: ['0 3 * * *', '*/15 * * * *', '@daily'] },
    ),
    timeZone: field(name(), 'The time zone of these times.', { byDefault: 'UTC', examples: ['Europe/Berlin'] }),
    missed: field(
      oneOf(MISSED),
      'Times at which no worker was there: one task for the newest, one for each, or none that is more than a minute old.',
      { byDefault: 'latest' },
    ),
    overlap: field(
      oneOf(OVERLAPS),
      'A time at which the task before has not ended: pass it over (a task that only waits is replaced), wait for the end, or enqueue at once.',
      { byDefault: 'skip' },
    ),
    queue: field(name(), "The queue of its tasks. Default: that of the type's definition."),
    priority: field(whole(0, HIGHEST_PRIORITY), 'The priority of its tasks.', { byDefault: 0 }),
    source: field(name(), 'The source of its tasks. Default: their type.'),
    category: field(name(), 'The category of its tasks.'),
    idempotent: field(
      flag(),
      "Whether a task may run twice. false: a person is asked when its outcome is unknown. Default: that of the type's definition.",
    ),
  },
  {
    instead: {
      every: "Write it as cron: '*/5 * * * *' is every five minutes.",
      task: "Did you mean 'type'?",
      payload: "Did you mean 'input'?",
      zone: "Did you mean 'timeZone'?",
      tz: "Did you mean 'timeZone'?",
    },
  },
);

/** A schedule of a file. */
export const SCHEDULE: Shape<FileSchedule> = {
  schema: { ...FIELDS.schema, required: ['type', 'cron'] },
  read(node, problems) {
    const schedule = FIELDS.read(node, problems);
    if (!schedule || node.kind !== 'map') return undefined;
    const missing = (['type', 'cron'] as const).filter((each) => !node.entries.some((entry) => entry.name === each));
    for (const each of missing) problems.refuse(node, `A schedule needs a ${quoted(each)}.`);
    if (schedule.type === undefined || schedule.cron === undefined) return undefined;
    return checked(schedule as FileSchedule, node, problems);
  },
};

function checked(schedule: FileSchedule, node: Node & { kind: 'map' }, problems: Problems): FileSchedule | undefined {
  const { cron, timeZone = 'UTC', missed, overlap = 'skip' } = schedule;
  if (missed === 'all' && overlap === 'skip') {
    problems.refuse(node, 'missed: all needs overlap: queue or overlap: allow.');
    return undefined;
  }
  try {
    parseCron({ cron, timeZone });
    return schedule;
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const member = error.message.startsWith('timeZone') ? 'timeZone' : 'cron';
    problems.refuse(node.entries.find((entry) => entry.name === member)?.value ?? node, error.message);
    return undefined;
  }
}
