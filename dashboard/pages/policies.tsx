import { useRef, useState } from 'preact/hooks';
import type { Backoff } from '../../src/failure/backoff.ts';
import { describeBackoff } from '../../src/failure/backoff.ts';
import { plural } from '../../src/views/plural.ts';
import { pathWords, valueWords } from '../../src/views/policy-values.ts';
import { visible } from '../../src/views/visible.ts';
import { segment } from '../data/address.ts';
import { type Problem, post, problemOf } from '../data/api.ts';
import type { PoliciesDiffDocument, PoliciesDocument, PolicyNumbers } from '../data/operating-documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Page, Section } from '../parts/page.tsx';
import { Loaded, ProblemNote } from '../parts/states.tsx';
import { type Column, Table } from '../parts/table.tsx';

type Item = PoliciesDocument['items'][number];

const COLUMNS: readonly Column<Item>[] = [
  {
    id: 'name',
    title: 'Type',
    cell: ({ name, kind }) =>
      kind === 'type' ? (
        <a href={`policies/${segment(name)}`} class="task-link" title={name}>
          <bdi>{visible(name)}</bdi>
        </a>
      ) : (
        <code>{name}</code>
      ),
  },
  { id: 'attempts', title: 'Attempts', isNumber: true, cell: ({ max_attempts: most }) => most },
  { id: 'backoff', title: 'Waits', isWide: true, cell: (policy) => backoffWords(policy) },
  { id: 'then', title: 'Then', cell: ({ on_exhausted: then }) => then.replace('_', ' ') },
  {
    id: 'rules',
    title: 'Rules',
    cell: ({ rules }) =>
      rules.length === 0 ? (
        ''
      ) : (
        <span title={rules.map(({ name }) => name).join(', ')}>{plural(rules.length, 'rule', 'rules')}</span>
      ),
  },
  { id: 'version', title: 'Version', cell: ({ version }) => <code class="muted">{version}</code> },
];

const OF_PRESETS = COLUMNS.map((column) => (column.id === 'name' ? { ...column, title: 'Preset' } : column));

/** How failures of each type are answered, and what another configuration would change. */
export function PoliciesPage() {
  const shown = useDocument<PoliciesDocument>('policies');
  return (
    <Page title="Policies">
      <Loaded shown={shown}>
        {({ config, items }) => {
          const of = (kind: Item['kind']) => items.filter((item) => item.kind === kind);
          return (
            <>
              <p class="muted policy-file">
                {config
                  ? `By ${visible(config.file)} (${config.version})${config.warnings > 0 ? `, with ${plural(config.warnings, 'warning', 'warnings')}` : ''}, over what programs say.`
                  : 'This dashboard has no configuration: policies are what programs say, and the defaults.'}
              </p>
              <h2 class="list-title">Types</h2>
              {of('type').length === 0 ? (
                <p class="muted">No type ran or was named in the last week.</p>
              ) : (
                <Table name="Policies of types" columns={COLUMNS} rows={of('type')} idOf={({ name }) => name} />
              )}
              <h2 class="list-title">Presets</h2>
              <Table name="Presets" columns={OF_PRESETS} rows={of('preset')} idOf={({ name }) => name} />
              <Diff file={config?.file} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function backoffWords({ backoff, jitter }: PolicyNumbers): string {
  const words = visible(describeBackoff(backoff as Backoff));
  const spread = valueWords(['jitter'], jitter);
  return spread === 'none' || spread === '' ? words : `${words}, ${spread}`;
}

// ── Diff ──

/** Compares a pasted file with what is in use. */
function Diff({ file }: { readonly file: string | undefined }) {
  const [yaml, setYaml] = useState('');
  const [answer, setAnswer] = useState<{
    readonly of: string;
    readonly found?: PoliciesDiffDocument;
    readonly problem?: Problem;
  }>();
  const present = useRef(yaml);
  present.current = yaml;
  const compare = async (event: Event) => {
    event.preventDefault();
    setAnswer(undefined);
    const next = await post<PoliciesDiffDocument>('policies/diff', { yaml }).then(
      (found) => ({ of: yaml, found }),
      (error) => ({ of: yaml, problem: problemOf(error) }),
    );
    if (present.current === yaml) setAnswer(next);
  };
  // An answer to an earlier text is not shown.
  const { found, problem } = answer?.of === yaml ? answer : {};
  return (
    <div class="diff">
      <Section title="What would another file change?">
        <form onSubmit={compare}>
          <label class="field">
            The other holdfast.yaml: it is only compared with {file ? visible(file) : 'the defaults'}
            <textarea
              class="mono-area"
              value={yaml}
              spellcheck={false}
              onInput={(event) => setYaml(event.currentTarget.value)}
            />
          </label>
          <div class="row-acts span-hint">
            <button type="submit">Compare</button>
          </div>
        </form>
        {problem && <ProblemNote problem={problem} />}
        {found && (
          <div role="status">
            {found.same && <p class="span-hint">Tasks are answered alike.</p>}
            {found.items.map(({ what, name, changes }) => (
              <div key={`${what} ${name}`}>
                <h3 class="span-hint">
                  {name === null ? 'every other type' : `${what.replace('_', ' ')} ${visible(name)}`}
                </h3>
                <ul class="plain-list">
                  {changes.map(({ path, before, after, before_from: was, after_from: is }) => (
                    <li key={path.join(' ')}>
                      <strong>{pathWords(path)}</strong>
                      <span class="diff-old">
                        {valueWords(path, before ?? undefined)} {was && `(${visible(was)})`}
                      </span>
                      <span>
                        → {valueWords(path, after ?? undefined)} {is && <span class="muted">({visible(is)})</span>}
                      </span>
                    </li>
                  ))}
                </ul>
              </div>
            ))}
          </div>
        )}
      </Section>
    </div>
  );
}
