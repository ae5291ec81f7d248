// Writes docs/reference/reasons.md and docs/reference/errors.md from what was built.
import { writeFileSync } from 'node:fs';
import { ERRORS } from '../dist/error-codes.js';
import { describeBackoff } from '../dist/failure/backoff.js';
import { ENGINE_REASONS, REASONS } from '../dist/failure/classify/reasons.js';
import { answerFor, standard } from '../dist/failure/policy.js';
import { errorsPage } from './errors-page.mjs';
import { reasonsPage } from './reasons-page.mjs';

const page = reasonsPage({
  reasons: REASONS,
  engineReasons: ENGINE_REASONS,
  answer: (reason, kind) => answerFor(standard, reason, kind),
  backoff: describeBackoff,
});
writeFileSync(new URL('../docs/reference/reasons.md', import.meta.url), page);
writeFileSync(new URL('../docs/reference/errors.md', import.meta.url), errorsPage(ERRORS));
