/*
 * Errors of HTTP clients contain whole requests, and their messages contain URLs. Credentials must never reach a database, a log
 * or a terminal. Only an error's name, code and message are kept, so only those are cleaned.
 */

const HIDDEN = '***';

/** Whether a text may contain a secret. Most do not, and are kept as they are. */
const SUSPICIOUS =
  /:\/\/[^/\s]*@|bearer|basic |token|passw|pwd|secret|api.?key|access.?key|account.?key|authori[sz]ation|cookie|signature|sig=|credential|private key|session|eyJ|\b(?:sk|rk|pk|gh[a-z]|xox[a-z]|glpat|shpat|AKIA|ASIA|AIza|hf|npm|pypi|SG|dop_v1|key)[-_.A-Z0-9]|[?&](?:key|code|auth)=|\bbot\d/i;

const RULES: readonly (readonly [RegExp, string])[] = [
  // scheme://user:password@host
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@'"]{0,256}@/gi, `$1${HIDDEN}@`],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, HIDDEN],
  [/\b((?:set-)?cookie["']?\s{0,3}[:=]\s{0,3}["']?)[^\n"']+/gi, `$1${HIDDEN}`],
  [
    /\b((?:proxy-)?authori[sz]ation["']?\s{0,3}[:=]\s{0,3}["']?)(?:(?:bearer|basic|digest|token|negotiate|aws4-hmac-sha256)\s+)?[^\s"',;]+/gi,
    `$1${HIDDEN}`,
  ],
  [/\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${HIDDEN}`],
  // Values of secret names, after = or : as in URLs, forms, JSON and headers. "using password: YES" is no secret.
  [
    /(\b|_|-)((?:access|refresh|id|auth|bearer|session|csrf|xsrf|api|bot|security)[_-]?token|token|pass(?:word|wd|phrase)?|pwd|(?:client[_-]?|app[_-]?|shared[_-]?)?secret|(?:x-)?api[_-]?key|(?:secret[_-]?)?access[_-]?key(?:[_-]?id)?|private[_-]?key|x-amz-(?:signature|credential|security-token)|signature|sig|session[_-]?id|credentials?|(?:shared[_-]?)?account[_-]?key|shared[_-]?access[_-]?key)(["']?\s{0,2}[=:]\s{0,2}["']?)(?!YES\b|NO\b|\*\*\*)[^\s"'&,;)}\]]+/gi,
    `$1$2$3${HIDDEN}`,
  ],
  [/\b(password|passphrase|secret)(\s{1,3}["'])[^"'\n]{1,256}(?=["'])/gi, `$1$2${HIDDEN}`],
  [/([?&](?:key|code|auth|sig|hmac)=)[^\s"'&#]+/gi, `$1${HIDDEN}`],
  // Tokens with a known form.
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?/g, HIDDEN],
  [
    /\b(?:(?:sk|rk|pk|whsec)[-_][A-Za-z0-9_-]{8,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|glpat-[A-Za-z0-9_-]{10,}|shp(?:at|ca|pa|ss)_[A-Za-z0-9]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|dop_v1_[a-f0-9]{20,}|secret_[A-Za-z0-9]{20,})/g,
    HIDDEN,
  ],
  // Telegram puts a bot's token into the path of its URLs.
  [/\bbot\d{6,12}:[A-Za-z0-9_-]{20,}/g, `bot${HIDDEN}`],
];

/** Whether it is a class name or a code: only letters and underscores, and too short to contain a secret. */
function isPlainWord(text: string): boolean {
  return text.length <= 32 && /^[A-Za-z_]+$/.test(text);
}

/** The text without credentials: authorisation headers, tokens, passwords, cookies, and user names and passwords in URLs. */
export function withoutSecrets(text: string): string {
  if (isPlainWord(text) || !SUSPICIOUS.test(text)) return text;
  let cleaned = text;
  for (const [secret, instead] of RULES) cleaned = cleaned.replace(secret, instead);
  return cleaned;
}
