import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { WHEN_GROUP_ENDS } from '../new-task.ts';
import { budgetFunctions } from './budget.ts';
import { transitionFunctions } from './transitions.ts';
import { quoted } from './writer.ts';

/** The files of functions. Each comes after the files whose functions it needs. */
const FILES = [
  'changes',
  'floors',
  'unique-keys',
  'allowances',
  'openings',
  'claim',
  'lanes',
  'checkpoints',
  'handed',
  'due',
  'days',
  'groups',
  'enqueue',
  'quiet',
  'counters',
  'failures',
  'settle',
  'retries',
  'states',
  'late',
  'recover',
  'move',
  'import',
  'redrives',
  'schedules',
  'sources',
  'chores',
];

/** The functions that are called from outside of the database. */
const CALLED = [
  'amend_task',
  'change_source',
  'changes_of',
  'claim',
  'end_groups',
  'enqueue_and_claim',
  'enqueue_tasks',
  'enqueue_within',
  'failure_entries_of',
  'failure_groups_of',
  'forbid_second_run',
  'gather_counts',
  'hold_source',
  'import_tasks',
  'join_worker',
  'last_fingerprint',
  'leave',
  'limit_source',
  'make_places',
  'move_tasks',
  'note_stopping',
  'oldest_ready',
  'order_queue',
  'others',
  'pause_queue',
  'prune',
  'publish',
  'read_counter_periods',
  'read_counters',
  'ready_of',
  'recalls',
  'record_stray',
  'remove_ended',
  'reorder',
  'redrive_advance',
  'redrive_change',
  'redrive_end',
  'redrive_preview',
  'redrive_put_back',
  'redrive_release',
  'redrive_select',
  'redrive_start',
  'schedule_define',
  'schedule_pause',
  'schedule_remove',
  'schedule_resume',
  'schedule_turn',
  'schedules_due',
  'release_source',
  'renew',
  'report_trouble',
  'rested',
  'resume_queue',
  'ripe',
  'roll_up_counters',
  'save_values',
  'set_up_queue',
  'settle',
  'state_of_source',
  'take_over',
  'take_steps',
  'take_turn',
  'write_failures',
  'tidy',
] as const;

export type FunctionName = (typeof CALLED)[number];

/**
 * Settings of the functions that are called. Their statements find rows by index, whatever the statistics say: a plan that scans
 * a small table would be kept, and be very slow after the table has grown. For the same reason, a statement with ids has no
 * condition for which an index on the state could be used: it says `state IS NOT DISTINCT FROM 'ready'`, or checks the token of
 * the lease, which only running tasks have.
 */
const SETTINGS = `SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
  SET enable_mergejoin = off SET enable_bitmapscan = off SET enable_material = off SET jit = off`;

/** PostgreSQL cuts longer names. */
const LONGEST_NAME = 63;

const HASH_LENGTH = 12;

/** The text of a file of SQL beside this one. */
export function sqlFile(path: string): string {
  return readFileSync(new URL(`./${path}.sql`, import.meta.url), 'utf8');
}

/**
 * The functions of this version. They are in their own schema, whose name has the hash of their text, so that versions with
 * different functions can run side by side.
 */
export interface Functions {
  /** The name of their schema, quoted for statements. */
  readonly schema: string;
  /** The SQL that makes them in their schema. */
  readonly own: string;
  /** The SQL that makes or replaces the functions that people call, in the schema of the tables. */
  readonly public: string;
  /** Where workers are told of news by NOTIFY: the same for all versions. */
  readonly channel: string;
}

const built = new Map<string, Functions>();

/** The functions over the tables of this schema, whose name is quoted. */
export function functionsOver(tables: string): Functions {
  let functions = built.get(tables);
  if (!functions) {
    functions = build(tables);
    built.set(tables, functions);
  }
  return functions;
}

function build(tables: string): Functions {
  const files = FILES.map((file) => sqlFile(`functions/${file}`));
  const channel = channelOf(tables);
  const own = [transitionFunctions(), budgetFunctions(), ...files, pickFunctions()]
    .join('\n')
    .replaceAll('{channel}', channel)
    .replaceAll('{when_group_ends}', String(WHEN_GROUP_ENDS));
  const forPeople = sqlFile('functions/public');
  const schema = nameFor(tables, own + forPeople + SETTINGS);
  const path = `${schema}, ${tables}`;
  return { schema, own: withSettings(own, path, CALLED), public: withSettings(forPeople, path), channel };
}

/**
 * Sets the search path and the plan settings of functions: of all, or only of these names. Each setting costs some microseconds
 * per call, so functions that only our functions call have none: the settings of the caller apply.
 */
export function withSettings(sql: string, path: string, only?: readonly string[]): string {
  const settings = `SET search_path = ${path}, pg_temp ${SETTINGS}`;
  return sql.replaceAll(DEFINITION, (found, name: string) =>
    only && !only.includes(name) ? found : `${found} ${settings}`,
  );
}

/** The beginning of a function in plpgsql, up to where its settings go. */
const DEFINITION = /FUNCTION (\w+)\((?:(?!LANGUAGE)[\s\S])*LANGUAGE plpgsql(?: STABLE)?(?: SECURITY DEFINER)?/g;

/** The two functions of pick.sql. */
function pickFunctions(): string {
  const text = sqlFile('functions/pick');
  const isLimited = '(SELECT bool_or(is_limited) FROM task WHERE id IN (SELECT id FROM given))';
  return [
    { name: 'pick', tasks: 'pick-any', isLimited: 'false', mayStay: 'track = 0' },
    { name: 'pick_limited', tasks: 'pick-limited', isLimited, mayStay: 'false' },
  ]
    .map(({ name, tasks, isLimited, mayStay }) =>
      text
        .replace('{name}', name)
        .replace('{tasks}', () => sqlFile(`functions/${tasks}`))
        .replace('{is_limited}', isLimited)
        .replace('{may_stay}', mayStay),
    )
    .join('\n');
}

function nameFor(tables: string, text: string): string {
  const hash = createHash('sha256').update(`${tables}\n${text}`).digest('hex').slice(0, HASH_LENGTH);
  let name = unquoted(tables);
  while (Buffer.byteLength(name) > LONGEST_NAME - HASH_LENGTH - 1) name = [...name].slice(0, -1).join('');
  return quoted(`${name}_${hash}`);
}

/** A channel name with a fixed length and plain characters, for any schema name. */
function channelOf(tables: string): string {
  return `holdfast_${createHash('sha256').update(unquoted(tables)).digest('hex').slice(0, 16)}`;
}

function unquoted(name: string): string {
  return name.slice(1, -1).replaceAll('""', '"');
}
