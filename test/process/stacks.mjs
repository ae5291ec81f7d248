// Compares the texts of stacks that Holdfast makes with those of Node: node stacks.mjs. Prints one line of JSON for each case.
import { runInThisContext } from 'node:vm';
import { makeStackText } from '../../dist/worker/stack-text.js';

class Parent {
  fail(message) {
    throw new TypeError(message);
  }
}
class Child extends Parent {}
class Own extends Error {
  code = 'E_OWN';
}
const inside = (name) => runInThisContext(`(function ${name}() { throw new Error('inside'); })`, 'generated.js');
const insides = [inside('one'), inside('two')];
const evaluated = ["throw new Error('a')", "throw new Error('b')"].map((body) => new Function('x', body));
async function later(n) {
  await null;
  throw new Error(`later ${n}`);
}
function send() {
  throw new Error('not sent');
}
const AS_METHODS = [{ send0: send }, { send1: send }];
const deep = (n) => (n === 0 ? new Error('deep').missing.member : deep(n - 1));

const FAILING = {
  'the same place': () => {
    throw new Error('same');
  },
  'another message each time': (n) => {
    throw new Error(`number ${n}`);
  },
  'two places': (n) => {
    if (n % 2) throw new Error('place');
    throw new Error('place');
  },
  'two classes of one method': (n) => (n % 2 ? new Child() : new Parent()).fail('inherited'),
  'one function as two methods': (n) => AS_METHODS[n % 2][`send${n % 2}`](),
  'two scripts with one name': (n) => insides[n % 2](),
  'code without a script': (n) => evaluated[n % 2](),
  'code of eval': (n) => runInThisContext(n % 2 ? "eval('null.x')" : "eval('null.y')", 'evaluating.js'),
  promises: (n) => later(n % 2),
  'all of some promises': (n) => Promise.all([null, later(n % 2)]),
  'another depth': (n) => deep(n % 3),
  'a class of its own': () => {
    throw new Own('own', { cause: new Error('cause') });
  },
  'an error of Node': () => Buffer.from({}),
  'a message that changed': (n) => {
    const error = new Error('before');
    error.message = `after ${n % 2}`;
    throw error;
  },
  'a stack that was read': (n) => {
    const error = new Error(`read ${n % 2}`);
    error.name = error.stack.slice(0, 3);
    throw error;
  },
  'a captured stack': (n) => {
    const error = new Error('captured');
    Error.captureStackTrace(error, n % 2 ? FAILING['a captured stack'] : undefined);
    throw error;
  },
  'no frames': () => {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      throw new Error('none');
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  },
};

/** The error, thrown at the same place for each of the two. */
async function thrown(fail, n) {
  try {
    await fail(n);
  } catch (error) {
    return error;
  }
}

async function textsOf(fail) {
  const texts = { node: [], holdfast: [] };
  // From here on, whoever called this is an asynchronous caller for all of them.
  await null;
  for (let n = 0; n < 12; n += 1) {
    for (const by of ['node', 'holdfast']) {
      const error = await thrown(fail, n);
      if (by === 'holdfast') makeStackText(error);
      texts[by].push(error.stack);
    }
  }
  return texts;
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const usual = Error.prepareStackTrace;
for (const [what, fail] of Object.entries(FAILING)) {
  const { node, holdfast } = await textsOf(fail);
  const differs = node.flatMap((text, n) => (text === holdfast[n] ? [] : [[text, holdfast[n]]]));
  say({ what, different: new Set(node).size, differs });
}
say({ restored: Error.prepareStackTrace === usual });

Error.prepareStackTrace = (error, sites) => `${error.message} of another tool, ${sites.length > 0}`;
const { holdfast } = await textsOf(FAILING['the same place']);
say({ byAnother: [...new Set(holdfast)] });
for (const value of [null, 7, 'text', new Proxy(new Error('x'), { get: () => null.x }), { stack: 1 }])
  makeStackText(value);
