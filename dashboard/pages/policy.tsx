import { scaleLinear } from 'd3-scale';
import { formatDuration } from '../../src/duration.ts';
import { counted } from '../../src/views/plural.ts';
import { pathWords, valueWords } from '../../src/views/policy-values.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, ask, segment } from '../data/address.ts';
import { commandFor } from '../data/commands.ts';
import type { DelaysDocument, PolicyDocument } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Command } from '../parts/copy.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Plot } from '../parts/plot.tsx';
import { AnswerTo, ERROR_EXAMPLE, Question } from '../parts/question.tsx';
import { Loaded } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';

type Value = PolicyDocument['values'][number];

const COLUMNS: readonly Column<Value>[] = [
  { id: 'path', title: 'Value', cell: ({ path }) => <strong>{pathWords(path)}</strong> },
  { id: 'is', title: 'Is', isWide: true, cell: ({ path, value }) => valueWords(path, value) },
  {
    id: 'from',
    title: 'Said by',
    isWide: true,
    cell: ({ from: { text, level } }) =>
      level === 'default' ? <span class="muted">{visible(text)}</span> : visible(text),
  },
];

/** The policy of a type: every delay, and each value with who said it. */
export function PolicyPage({ type }: { readonly type: string }) {
  const { query } = address.value;
  const [reason, error] = [query.get('reason') ?? '', query.get('error') ?? ''];
  const shown = useDocument<PolicyDocument>(`policies/${segment(type)}`);
  const delays = useDocument<DelaysDocument>(addressOf(`policies/${segment(type)}/schedule`, { reason }));
  const rules = [
    ...new Set(
      (shown.document?.values ?? []).filter(({ path }) => path[0] === 'rules').map(({ path }) => path[1] ?? ''),
    ),
  ];
  return (
    <Page title={visible(type)} back={{ to: 'policies', words: 'Policies' }} heading={<bdi>{visible(type)}</bdi>}>
      <Section title="Every retry">
        {rules.length > 0 && (
          <label class="field rule-choice">
            For failures of
            <select value={reason} onChange={(event) => ask({ reason: event.currentTarget.value || undefined })}>
              <option value="">any reason without a rule</option>
              {[...new Set([...rules, ...(reason === '' ? [] : [reason])])].map((rule) => (
                <option key={rule} value={rule}>
                  {visible(rule)}
                </option>
              ))}
            </select>
          </label>
        )}
        <Loaded shown={delays}>{(document) => <Delays delays={document} />}</Loaded>
        <p class="span-hint">
          <Command text={commandFor('policies', 'schedule', type, ...(reason === '' ? [] : ['--reason', reason]))} />
        </p>
      </Section>
      <Section title="Try an error">
        <Question
          label="If a new task fails with this error"
          asked={error}
          placeholder={ERROR_EXAMPLE}
          onAsk={(text) => ask({ error: text })}
        />
        {error !== '' && (
          <>
            <AnswerTo path={addressOf(`policies/${segment(type)}/explain-error`, { error })} />
            <p class="span-hint">
              <Command text={commandFor('explain', '--type', type, '--error', error)} />
            </p>
          </>
        )}
      </Section>
      <Loaded shown={shown}>
        {({ values }) => (
          <>
            <h2 class="list-title">Each value, and who said it</h2>
            <Table name="Values of the policy" columns={COLUMNS} rows={values} idOf={({ path }) => path.join(' ')} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

const ROW = 26;
const MOST_DRAWN = 30;

/** One bar for each wait: as long as it lasts, with its jitter, at the time since the first failure. */
function Delays({ delays: { delays, then, because, max_attempts: most } }: { readonly delays: DelaysDocument }) {
  const ends = `Then ${then === null ? 'it goes on' : then.replace('_', ' ')}${because ? `: ${visible(because.replace(/\.$/, ''))}` : ''}.`;
  if (delays.length === 0) return <p>It is not retried. {ends}</p>;
  const drawn = delays.slice(0, MOST_DRAWN);
  const total = delays.at(-1)?.cumulative_ms ?? 0;
  const summary = `${counted(delays.length, 'retry', 'retries')} of ${counted(most, 'attempt', 'attempts')} in ${formatDuration(total)}${delays.length > drawn.length ? `; the first ${drawn.length} are drawn` : ''}. ${ends}`;
  const end = Math.max(1, ...drawn.map(({ cumulative_ms: at, max_ms: latest, delay_ms: wait }) => at - wait + latest));
  const draw = (width: number) => {
    const left = 64;
    const x = scaleLinear()
      .domain([0, end])
      .range([left, width - 90]);
    return drawn.map(({ retry, delay_ms: wait, min_ms: low, max_ms: high, cumulative_ms: at }, i) => {
      const y = i * ROW + 4;
      const begins = at - wait;
      return (
        <g key={retry}>
          <title>{`retry ${retry} after ${formatDuration(wait)} (${formatDuration(low)} to ${formatDuration(high)}), ${formatDuration(at)} in all`}</title>
          <text class="tick" x={0} y={y + 13}>
            retry {retry}
          </text>
          <rect
            class="bar waiting outline"
            x={x(begins)}
            y={y}
            width={Math.max(2, x(begins + high) - x(begins))}
            height={16}
            rx="3"
          />
          <rect
            class="bar waiting"
            x={x(begins)}
            y={y}
            width={Math.max(2, x(begins + wait) - x(begins))}
            height={16}
            rx="3"
          />
          <text class="span-name" x={x(begins + high) + 8} y={y + 13}>
            {formatDuration(wait)}
          </text>
        </g>
      );
    });
  };
  const rows = delays.map(({ retry, delay_ms: wait, min_ms: low, max_ms: high, cumulative_ms: at }) => [
    retry,
    formatDuration(wait),
    low === high ? '' : `${formatDuration(low)} to ${formatDuration(high)}`,
    formatDuration(at),
  ]);
  return (
    <Plot
      title="Waits before each retry"
      summary={summary}
      series={[
        { id: 'wait', title: 'waits', style: 'waiting' },
        { id: 'jitter', title: 'with jitter at most', style: 'waiting', texture: 'outline' },
      ]}
      height={drawn.length * ROW + 8}
      draw={draw}
      table={{ heads: ['Retry', 'After', 'With jitter', 'In all'], rows }}
    />
  );
}
