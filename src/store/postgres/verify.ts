import { PROBE_HOLDS_FOR } from '../../starts.ts';
import { WHEN_GROUP_ENDS } from '../new-task.ts';
import { type Database, LONG_ANSWER_WITHIN_MS } from './database.ts';

/** Each query finds rows that break an invariant; the sentence says which. $ stands for the schema. */
const INVARIANTS: Readonly<Record<string, string>> = {
  'stands in several places': `
    SELECT id FROM (SELECT id FROM $.live UNION ALL SELECT id FROM $.ended UNION ALL SELECT id FROM $.succeeded) p
    GROUP BY id HAVING count(*) > 1`,
  'has a place but no payload, or the other way round': `
    SELECT id FROM (SELECT id, class FROM $.live UNION ALL SELECT id, class FROM $.succeeded WHERE payload IS NULL) p
      FULL JOIN $.bodies USING (id) WHERE (p.class IS NULL) <> (bodies.payload IS NULL)`,
  'stands in a lane of another class, source or track': `
    SELECT t.id FROM $.live t JOIN $.bodies b ON b.id = t.id LEFT JOIN $.lanes l ON l.id = t.lane WHERE t.state = 'ready'
      AND (l.id IS NULL OR l.class <> t.class OR l.source <> b.source OR CASE WHEN t.suspect THEN
        l.track <> CASE WHEN t.lost_in_a_row < 2 THEN 2 ELSE 3 END WHEN t.needs_token THEN l.track <> 1 ELSE l.track NOT IN (0, 4) END)`,
  'is ready, but its lane is at rest although its source is open': `
    SELECT t.id FROM $.live t JOIN $.lanes l ON l.id = t.lane WHERE t.state = 'ready' AND NOT l.active
      AND NOT EXISTS (SELECT 1 FROM $.sources s WHERE s.name = l.source)
      AND NOT EXISTS (SELECT 1 FROM $.source_states s WHERE s.name = l.source
        AND (s.closed_by IS NOT NULL OR l.track = 1 AND s.budget_opens_at IS NOT NULL))`,
  'stands before the rank of its lane': `
    SELECT t.id FROM $.live t JOIN $.lanes l ON l.id = t.lane JOIN $.classes c ON c.id = l.class JOIN $.queues q ON q.id = c.queue
    WHERE t.state = 'ready' AND l.active AND NOT q.fair AND (t.order_key, t.seq) < (l.rank, l.rank_seq)`,
  'stands below the low key of its lane': `
    SELECT t.id FROM $.live t JOIN $.low_keys k ON k.until > $.now_ms() AND k.lanes[width_bucket(t.lane, k.lanes)] = t.lane
    WHERE t.state = 'ready' AND t.order_key < k.keys[width_bucket(t.lane, k.lanes)]`,
  'is leased to a worker that is not there': `
    SELECT id FROM $.live WHERE state = 'running' AND worker <> 0 AND worker NOT IN (SELECT id FROM $.workers)`,
  'is a probe that began too soon after another one of its source': `
    SELECT t.id FROM $.live t JOIN $.live o ON o.counted = t.counted AND o.is_probe AND o.state = 'running' AND o.id <> t.id
    WHERE t.is_probe AND t.state = 'running' AND t.since >= o.since AND t.since < o.since + ${PROBE_HOLDS_FOR}`,
  'was removed and left a lost lease behind': `
    SELECT task AS id FROM $.lost WHERE task NOT IN (SELECT id FROM $.live UNION ALL SELECT id FROM $.ended
      UNION ALL SELECT id FROM $.succeeded)`,
  'is ready, but its source is closed until something of it ends, and nothing of it runs': `
    SELECT t.id FROM $.live t JOIN $.lanes l ON l.id = t.lane JOIN $.source_states s ON s.name = l.source
    WHERE t.state = 'ready' AND s.closed_by IS NOT NULL AND s.opens_at IS NULL AND coalesce(s.shut_until, 0) < 9223372036854775807
      AND NOT EXISTS (SELECT 1 FROM $.live r WHERE r.state = 'running' AND r.counted = s.name)`,
  'has a key that does not lead to it': `
    SELECT t.id FROM (SELECT b.id, l.class, b.key FROM $.bodies b JOIN $.live l ON l.id = b.id
      UNION ALL SELECT id, class, key FROM $.ended UNION ALL SELECT id, class, key FROM $.succeeded) t
    JOIN $.classes c ON c.id = t.class LEFT JOIN $.keys k ON k.key = t.key AND k.type = c.type
    WHERE t.key IS NOT NULL AND k.task IS DISTINCT FROM t.id`,
  'was removed and is still in a redrive': `
    SELECT task AS id FROM $.redrive_tasks r WHERE NOT EXISTS (SELECT 1 FROM $.live t WHERE t.id = r.task)
      AND NOT EXISTS (SELECT 1 FROM $.ended t WHERE t.id = r.task) AND NOT EXISTS (SELECT 1 FROM $.succeeded t WHERE t.id = r.task)`,
  'waits for a group that has ended': `
    SELECT id FROM $.live l WHERE state = 'scheduled' AND run_at = ${WHEN_GROUP_ENDS}
      AND NOT EXISTS (SELECT 1 FROM $.group_tasks g WHERE g.follow_up = l.id AND g.ended IS NULL)`,
  'has ended, and its group waits for it': `
    SELECT g.task AS id FROM $.group_tasks g WHERE g.ended IS NULL AND NOT EXISTS (SELECT 1 FROM $.live t WHERE t.id = g.task AND t.in_group)
      AND NOT EXISTS (SELECT 1 FROM $.ended t WHERE t.id = g.task AND t.state = 'needs_manual')`,
  'was removed and left its group behind': `
    SELECT follow_up AS id FROM $.group_tasks g WHERE NOT EXISTS (SELECT 1 FROM $.live t WHERE t.id = g.follow_up)
      AND NOT EXISTS (SELECT 1 FROM $.ended t WHERE t.id = g.follow_up) AND NOT EXISTS (SELECT 1 FROM $.succeeded t WHERE t.id = g.follow_up)`,
  'was removed and left its checkpoint behind': `
    SELECT task AS id FROM $.checkpoints c WHERE NOT EXISTS (SELECT 1 FROM $.live t WHERE t.id = c.task)
      AND NOT EXISTS (SELECT 1 FROM $.ended t WHERE t.id = c.task) AND NOT EXISTS (SELECT 1 FROM $.succeeded t WHERE t.id = c.task)`,
  'has a unique key to itself that it should not have, or the other way round': `
    WITH tasks AS (SELECT b.id, l.class, b.unique_key AS key, b.unique_while AS scope, l.state FROM $.bodies b JOIN $.live l ON l.id = b.id
      UNION ALL SELECT id, class, unique_key, unique_while, state FROM $.ended),
    entitled AS (SELECT c.type, t.key, t.id FROM tasks t JOIN $.classes c ON c.id = t.class WHERE t.key IS NOT NULL
      AND (t.state IN ('scheduled', 'ready', 'held') OR t.scope = 'unfinished' AND t.state IN ('running', 'needs_manual')))
    SELECT id FROM (SELECT * FROM entitled EXCEPT SELECT type, key, task FROM $.uniques WHERE NOT released) a
    UNION ALL SELECT task FROM (SELECT type, key, task FROM $.uniques WHERE NOT released EXCEPT SELECT * FROM entitled) b`,
};

/** Every broken invariant, as a sentence that names a task; none in a sound store. */
export async function brokenInvariants(database: Database): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const [sentence, query] of Object.entries(INVARIANTS)) {
    const text = query.replaceAll('$.', () => `${database.schema}.`);
    const rows = await database.rows<{ id: number }>(`SELECT id FROM (${text}) broken ORDER BY id LIMIT 5`, [], {
      within: LONG_ANSWER_WITHIN_MS,
    });
    broken.push(...rows.map(({ id }) => `Task #${id} ${sentence}.`));
  }
  return broken;
}
