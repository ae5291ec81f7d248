import { type Classifier, type ClassifyRule, classifierFrom } from './rules.ts';

/**
 * Rules for errors that are only English text, such as the output of a command. They are opt-in, because words are weak evidence:
 * `classifierFrom(messageRules)`, or after your own rules. To avoid wrong matches, a number such as 503 counts only beside words
 * that make it a status, and "not found" only at the end of the text or with the name of what is missing. The first 8,192
 * characters are searched, in linear time.
 */
export const messageRules: readonly ClassifyRule[] = [
  {
    name: 'messages.rate_limited',
    when: {
      message: String.raw`(?i)(?:^|[:.(\-] ?|\b(?:api|error|the|your|a) )(?:too many requests|(?:\w+ )?rate[ -]limit(?:ed)?(?: (?:was|is|has been))?(?: (?:exceeded|reached|hit))?(?:[\s.,:;!)]|$)|request(?:s)? (?:was|were|is|are) throttled|quota (?:was |has been )?exceeded)`,
    },
    reason: 'throttled',
  },
  {
    name: 'messages.unavailable',
    when: {
      message: String.raw`(?i)(?:^|[:.(\-] ?|\b(?:server|service|host|resource|system|api|mailbox|repository) (?:is |was )?(?:currently )?)(?:temporarily unavailable|(?:service )?unavailable|bad gateway|temporary (?:failure|error|problem))(?:[\s.,:;!()]|$)`,
    },
    reason: 'http.5xx',
    ambiguous: false,
  },
  {
    name: 'messages.refused',
    when: { message: String.raw`(?i)(?:^|[:.(\-] ?|\b)connection (?:was |has been )?refused(?:[\s.,:;!()]|$)` },
    reason: 'net.refused',
  },
  {
    name: 'messages.timeout',
    when: {
      message: String.raw`(?i)(?:^|[:.(\-] ?|\b(?:connection|request|read|write|socket|gateway|operation|connect|response) )(?:timed[ -]?out|time-?out)(?:[\s.,:;!()]|$)`,
    },
    reason: 'timeout',
  },
  {
    name: 'messages.network',
    when: {
      message: String.raw`(?i)(?:^|[:.(\-] ?)(?:the )?network (?:error|failure|problem|(?:is |was )?(?:unreachable|down|unavailable))(?:[\s.,:;!()]|$)`,
    },
    reason: 'net.failed',
  },
  {
    name: 'messages.may_pass',
    when: {
      message: String.raw`(?i)\b(?:try(?: it| this)? again|retry (?:again|later|in|after)|come back later|temporary (?:error|failure|problem)|temporarily)\b`,
    },
    reason: 'explicit.transient',
  },
  {
    name: 'messages.denied',
    when: { message: String.raw`(?i)(?:^|[:.(\-] ?)(?:permission|access)(?: was| is)? denied(?:[\s.,:;!()]|$)` },
    reason: 'auth.forbidden',
  },
  {
    name: 'messages.authentication',
    when: {
      message: String.raw`(?i)(?:^|[:.(\-] ?)(?:(?:user |login )?authentication (?:has )?failed|(?:invalid|bad|wrong|incorrect) (?:credentials|username or password|password)|login (?:failed|incorrect))(?:[\s.,:;!()]|$)`,
    },
    reason: 'auth.invalid',
  },
  {
    name: 'messages.not_found',
    when: {
      message: String.raw`(?i)(?:^|[:.(\-] ?)(?:(?:the )?(?:file|folder|directory|path|mailbox|repository|repo|branch|page|resource|object|message|user|host key)(?: ['"\x60][^'"\x60]{1,200}['"\x60])? (?:was |is )?)?not found[.!]?$`,
    },
    reason: 'not_found',
  },
];

/** The same classifier, which looks for these phrases in what it does not recognise otherwise. */
export function withMessageRules({ classify, outcomeOf }: Classifier): Classifier {
  const phrases = classifierFrom(messageRules);
  return {
    classify(thrown, context) {
      const failure = classify(thrown, context);
      return failure.reason === 'unknown' ? phrases.classify(thrown, context) : failure;
    },
    outcomeOf(thrown, context) {
      const outcome = outcomeOf(thrown, context);
      const isUnknown = outcome.kind === 'failure' && outcome.failure.reason === 'unknown';
      return isUnknown ? phrases.outcomeOf(thrown, context) : outcome;
    },
  };
}
