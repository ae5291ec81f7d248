import {
  holdSource,
  limitSource,
  listedSources,
  probeSource,
  releaseSource,
  shownSource,
  shownSourceContent,
  sourceActedOnContent,
  sourceOf,
  sourcesContent,
} from '../../documents/sources.ts';
import { LIMITS, NOTE } from '../common-fields.ts';
import { numberField, optional, textField } from '../fields.ts';
import { type Route, route } from '../route.ts';

const SOURCE = textField('the name of a source, such as `imap:INBOX`', 1_000);

export const SOURCES: readonly Route[] = [
  route({
    method: 'GET',
    path: 'sources',
    summary: 'the sources that are not in their normal state, the others with the most tasks, and their outages',
    needs: 'view',
    query: { hours: optional(numberField('how far back the timelines go; default 24', 1, 720)) },
    answer: 'sources',
    run: async ({ holdfast, query: { hours } }) => sourcesContent(await listedSources(holdfast, hours)),
  }),
  route({
    method: 'GET',
    path: 'sources/{name}',
    summary: 'everything about one source: its state, its outages, and who held or released it',
    needs: 'view',
    params: { name: SOURCE },
    query: { days: optional(numberField('how far back; default 7', 1, 30)) },
    answer: 'sources.show',
    run: async ({ holdfast, path, query: { days } }) =>
      shownSourceContent(await shownSource(holdfast, path.name, days)),
  }),
  route({
    method: 'POST',
    path: 'sources/{name}/hold',
    summary: 'hold a source: none of its tasks starts; running tasks go on',
    needs: 'sources',
    params: { name: SOURCE },
    body: { note: NOTE, for: optional(textField('the hold ends by itself after so long, such as `2h`', 100)) },
    answer: 'sources.hold',
    run: async ({ holdfast, path, by, body: { for: time } }) => {
      const before = await sourceOf(holdfast, path.name);
      return sourceActedOnContent(
        holdfast,
        await holdSource(holdfast, before, { ...by, ...(time !== undefined && { for: time }) }),
      );
    },
  }),
  ...(
    [
      ['release', 'release a source that is held, down, asked to wait or needs a person', releaseSource],
      ['probe', 'test a source that is down with its next task, now', probeSource],
    ] as const
  ).map(([verb, summary, act]) =>
    route({
      method: 'POST',
      path: `sources/{name}/${verb}`,
      summary,
      needs: 'sources',
      params: { name: SOURCE },
      body: { note: NOTE },
      answer: `sources.${verb}`,
      run: async ({ holdfast, path, by }) =>
        sourceActedOnContent(holdfast, await act(holdfast, await sourceOf(holdfast, path.name), by)),
    }),
  ),
  route({
    method: 'POST',
    path: 'sources/{name}/limit',
    summary: 'limit how often the tasks of a source start, and how many run at the same time; null removes a limit',
    needs: 'sources',
    params: { name: SOURCE },
    body: { ...LIMITS, note: NOTE },
    answer: 'sources.limit',
    run: async ({ holdfast, path, by, body: { pace, concurrency } }) => {
      const limits = { ...(pace !== undefined && { pace }), ...(concurrency !== undefined && { concurrency }) };
      const before = await sourceOf(holdfast, path.name);
      return sourceActedOnContent(holdfast, await limitSource(holdfast, before, { ...limits, ...by }));
    },
  }),
];
