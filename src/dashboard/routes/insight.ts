import { auditContent } from '../../documents/audit.ts';
import { completionContent } from '../../documents/completion.ts';
import { eventsContent } from '../../documents/events.ts';
import { forecastContent } from '../../documents/forecast.ts';
import { statsContent } from '../../documents/stats.ts';
import { formatDuration } from '../../duration.ts';
import { FILTER, limitField } from '../common-fields.ts';
import { durationField, numberField, optional, textField } from '../fields.ts';
import { type Route, route } from '../route.ts';

const HOUR = 3_600_000;
const HAPPENED = 50;
const MOST_HAPPENED = 1_000;
const AUDITED = 50;
const MOST_AUDITED = 500;

export const INSIGHT: readonly Route[] = [
  route({
    method: 'GET',
    path: 'stats',
    summary: 'how executions went: successes, failures, retries and how they ended, by type and source',
    needs: 'view',
    query: {
      filter: optional(FILTER),
      since: optional(textField('only what was settled since then: 24h (so long ago), or a time', 64)),
      bin: optional(durationField('also the counts of each span of time of this length')),
    },
    answer: 'stats',
    run: async ({ holdfast, query: { filter = '', since, bin } }) => {
      const terms = since === undefined ? filter : `${filter} since:"${since.replaceAll(/["\\]/g, '')}"`;
      return statsContent(
        await holdfast.stats({ filter: terms, ...(bin !== undefined && { bin: formatDuration(bin) }) }),
      );
    },
  }),
  route({
    method: 'GET',
    path: 'forecast',
    summary: 'what falls due, by the minute, and the largest groups of it',
    needs: 'view',
    query: { within: optional(durationField('how far it looks ahead; default 1h')) },
    answer: 'forecast',
    run: ({ holdfast, query: { within = HOUR } }) => forecastContent(holdfast, within),
  }),
  route({
    method: 'GET',
    path: 'happened',
    summary: 'what happened to tasks, sources and queues, the newest first: the document of `holdfast events`',
    needs: 'view',
    query: { filter: optional(FILTER), limit: limitField(HAPPENED, MOST_HAPPENED) },
    answer: 'events',
    run: async ({ holdfast, query: { filter = '', limit = HAPPENED } }) =>
      eventsContent(await holdfast.administration.events({ filter, limit })),
  }),
  route({
    method: 'GET',
    path: 'audit',
    summary: 'what people did, the newest first: on tasks, sources, queues and groups of failures',
    needs: 'view',
    query: {
      limit: limitField(AUDITED, MOST_AUDITED),
      before: optional(textField('only what was done before: `next` of the page before', 100)),
    },
    answer: 'audit',
    run: ({ holdfast, query: { limit = AUDITED, before } }) => auditContent(holdfast, { limit, before }),
  }),
  route({
    method: 'GET',
    path: 'filter/complete',
    summary: 'how a filter may go on, with names that the store knows',
    needs: 'view',
    query: {
      text: optional(textField('the filter', 4_096)),
      at: optional(numberField('where it is written on; default: its end', 0, 4_096)),
    },
    answer: 'filter.complete',
    run: ({ holdfast, query: { text = '', at = text.length } }) => completionContent(holdfast, text, at),
  }),
];
