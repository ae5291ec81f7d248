// Writes docs/reasons.md from what was built.
import { writeFileSync } from 'node:fs';
import { describeBackoff } from '../dist/failure/backoff.js';
import { ENGINE_REASONS, REASONS } from '../dist/failure/classify/reasons.js';
import { answerFor, standard } from '../dist/failure/policy.js';
import { reasonsPage } from './reasons-page.mjs';

const page = reasonsPage({
  reasons: REASONS,
  engineReasons: ENGINE_REASONS,
  answer: (reason, kind) => answerFor(standard, reason, kind),
  backoff: describeBackoff,
});
writeFileSync(new URL('../docs/reasons.md', import.meta.url), page);
