// Rebuild what a handler threw from a line of cases.jsonl:  rebuild(case.error)  ->  the thrown value.
// Errors come back with the same constructor names along the prototype chain, name, message, code, cause,
// errors[], enumerable props and (as non-enumerable props) what the library kept in getters or hidden fields.
const NATIVE = { Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError, AggregateError };
const hide = (o, k, v) =>
  Object.defineProperty(o, k, { value: v, enumerable: false, writable: true, configurable: true });
const named = (n) => ({ [n]: class {} })[n];
function metadata(entries) {
  const m = new Map();
  for (const [k, v] of entries) m.set(k, [...(m.get(k) ?? []), dec(v)]);
  const o = new (named('Metadata'))();
  hide(o, 'get', (k) => m.get(String(k).toLowerCase()) ?? []);
  hide(o, 'getMap', () => Object.fromEntries([...m].map(([k, v]) => [k, v[0]])));
  hide(o, 'toJSON', () => Object.fromEntries(m));
  hide(o, 'internalRepr', m);
  return o;
}
function headersLike(entries, ctor) {
  const o = new (named(ctor || 'HeadersLike'))();
  for (const [k, v] of entries) o[k] = v;
  hide(o, 'get', (n) => {
    const f = entries.find(([k]) => k.toLowerCase() === String(n).toLowerCase());
    return f ? f[1] : undefined;
  });
  hide(o, 'has', (n) => entries.some(([k]) => k.toLowerCase() === String(n).toLowerCase()));
  hide(o, 'toJSON', () => Object.fromEntries(entries));
  hide(o, Symbol.iterator, function* () {
    yield* entries;
  });
  return o;
}
export function dec(v, anc = []) {
  if (v === null || typeof v !== 'object') return v;
  if (Array.isArray(v)) return v.map((x) => dec(x, anc));
  switch (v.$type) {
    case undefined:
    case 'obj': {
      const o = {};
      for (const [k, x] of Object.entries(v)) if (!(v.$type && (k === '$type' || k === 'ctor'))) o[k] = dec(x, anc);
      return o;
    }
    case 'undefined':
      return undefined;
    case 'number':
      return Number(v.v);
    case 'bigint':
      return BigInt(v.v);
    case 'string':
      return v.v;
    case 'symbol':
      return Symbol(v.v);
    case 'function':
      return Object.defineProperty(() => {}, 'name', { value: v.name });
    case 'Date':
      return new Date(v.iso);
    case 'URL':
      return new URL(v.href);
    case 'Buffer':
      return Buffer.from(v.base64, 'base64');
    case 'Map':
      return new Map(v.entries.map(([k, x]) => [dec(k), dec(x)]));
    case 'Set':
      return new Set(v.values.map(dec));
    case 'Headers':
      return new Headers(v.entries);
    case 'HeadersLike':
      return headersLike(v.entries, v.ctor);
    case 'Metadata':
      return metadata(v.entries);
    case 'Response': {
      const r = new Response(null, {
        status: v.status >= 200 && v.status <= 599 ? v.status : 500,
        statusText: v.statusText,
        headers: v.headers,
      });
      if (r.status !== v.status) hide(r, 'status', v.status);
      hide(r, 'url', v.url);
      for (const [k, x] of Object.entries(v.props ?? {})) hide(r, k, dec(x));
      return r;
    }
    case 'Error':
      return error(v, anc);
    case 'ref':
      return anc[v.i]; // cyclic cause
    default:
      throw new Error(`unknown $type ${v.$type}`);
  }
}
function error(s, anc = []) {
  const errors = s.errors === undefined ? undefined : dec(s.errors, anc);
  let e;
  if (s.protos[0] === 'DOMException') e = new DOMException(s.message, s.name);
  else {
    const baseName = s.protos.find((n) => n in NATIVE) ?? 'Error';
    let cls = NATIVE[baseName];
    for (const n of s.protos
      .slice(0, s.protos.indexOf(baseName) < 0 ? s.protos.length : s.protos.indexOf(baseName))
      .reverse())
      cls = { [n]: class extends cls {} }[n];
    const args =
      baseName === 'AggregateError' ? [Array.isArray(errors) ? errors : [], dec(s.message)] : [dec(s.message)];
    e = Reflect.construct(NATIVE[baseName], args, cls);
    if (e.message !== s.message) hide(e, 'message', dec(s.message));
    if (e.name !== s.name) hide(e, 'name', s.name);
    hide(e, 'stack', `${s.name}: ${s.message}\n    at handler (file:///app/handler.js:1:1)`);
  }
  for (const [k, v] of Object.entries(s.props ?? {}))
    Object.defineProperty(e, k, { value: dec(v, [...anc, e]), enumerable: true, writable: true, configurable: true });
  for (const [k, v] of Object.entries(s.hidden ?? {}))
    if (!(s.protos[0] === 'DOMException' && k === 'code')) hide(e, k, dec(v, [...anc, e]));
  if (errors !== undefined && !Object.hasOwn(e, 'errors')) hide(e, 'errors', errors);
  if ('cause' in s) hide(e, 'cause', dec(s.cause, [...anc, e]));
  return e;
}
export const rebuild = (s) => (s.kind === 'error' ? error(s) : dec(s.value));
export default rebuild;
