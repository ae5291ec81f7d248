// What is measured of claims: each scenario fills a database and answers lines of figures.

const count = (tasks) => tasks.length;

async function warm(claim, times = 50) {
  for (let n = 0; n < times; n++) await claim();
}

/** Fills a queue over so many sources and claims from it without settling, one at a time and fifty at a time. */
function overSources(sources, settings = {}) {
  return async (bench) => {
    await bench.store.sources.setUp('default', settings);
    await bench.enqueue(20_000, (n) => ({ source: `s${n % sources}` }));
    const next = await bench.claimer();
    const claim = async (limit) => count(await next({ limit }));
    await warm(() => claim(1));
    const lines = [await bench.measure('one at a time', 500, () => claim(1))];
    await warm(() => claim(50), 10);
    lines.push(await bench.measure('fifty at a time', 60, () => claim(50)));
    return lines;
  };
}

/** Cancels the tasks of very many sources and claims the one task that waits behind them. */
function behindEmptied(settings = {}) {
  return async (bench, scale) => {
    const emptied = Math.ceil(20_000 * scale);
    await bench.store.sources.setUp('default', settings);
    const ids = await bench.enqueue(emptied, (n) => ({ source: `s${n}` }));
    await bench.enqueue(300, (n) => ({ source: `behind${n}` }));
    for (let n = 0; n < ids.length; n += 1_000) {
      await bench.store.tasks.move(ids.slice(n, n + 1_000), { verb: 'cancel', actor: 'bench' });
    }
    const next = await bench.claimer();
    const claim = async () => count(await next());
    return [
      await bench.measure(`first claim behind ${emptied} emptied sources`, 1, claim),
      await bench.measure('later claims', 200, claim),
    ];
  };
}

/** Drains sources that have one task each, with so many workers at once, and prints the throughput. */
function drainWith(workers) {
  return async (bench, scale) => {
    const sources = Math.ceil(60_000 * scale);
    await bench.enqueue(sources, (n) => ({ source: `s${n}` }));
    const stores = [bench.store];
    while (stores.length < workers) stores.push(await bench.open());
    const started = performance.now();
    const shares = await Promise.all(stores.map((store) => drain(bench, store)));
    const seconds = (performance.now() - started) / 1_000;
    const perSecond = (shares.reduce((a, b) => a + b) / seconds).toFixed(0);
    return [`${sources} sources, ${workers} workers: ${perSecond} tasks/s, shares ${shares.join(', ')}`];
  };
}

async function drain(bench, store) {
  const next = await bench.claimer({ limit: 50 }, store);
  let done = 0;
  for (let tasks = await next(); tasks.length > 0; ) {
    // The settlement and the next claim share a statement.
    const settled = bench.settle(store, tasks);
    done += tasks.length;
    [tasks] = await Promise.all([next(), settled]);
  }
  return done;
}

/** Claims from a queue with a task of each of so many types, as a worker that takes every type. */
function overClasses(types) {
  return async (bench, scale) => {
    const classes = Math.ceil(types * scale);
    await bench.enqueue(4 * classes, (n) => ({ type: `type${n % classes}` }));
    const next = await bench.claimer();
    return [await bench.measure(`${classes} classes`, 200, async () => count(await next()))];
  };
}

/** Drains one source alone, then beside held tasks of very many sources that are shut. */
function besideShut({ sources, tasks }) {
  return async (bench, scale) => {
    const shut = Math.ceil(sources * scale);
    const next = await bench.claimer();
    const claimAndSettle = async (limit) => {
      const claimed = await next({ limit });
      await bench.settle(bench.store, claimed);
      return count(claimed);
    };
    const drain = async (what, limit, amount) => {
      await bench.enqueue(amount, () => ({ source: 'open' }));
      // Both times without dead rows of before.
      await bench.query('VACUUM');
      return bench.measure(`${what}, ${limit} at a time`, amount / limit, () => claimAndSettle(limit));
    };
    await drain('warm', 50, 5_000);
    const lines = [await drain('alone', 50, 10_000), await drain('alone', 1, 1_000)];
    await bench.enqueue(Math.ceil(tasks * scale), (n) => ({ source: `shut${n % shut}` }));
    for (let n = 0; n < shut; n++) {
      const restriction = { cause: 'breaker', shutFor: 3_600_000, probing: false, ramping: false };
      const change = { memory: '{}', tokens: 0, refunds: [], restriction };
      await bench.store.sources.change(`shut${n}`, { revision: 0, change });
    }
    await bench.enqueue(10, () => ({ source: 'open' }));
    lines.push(await bench.measure(`first claim beside ${shut} shut sources`, 1, () => claimAndSettle(10)));
    await drain('warm', 50, 5_000);
    return [...lines, await drain('beside', 50, 10_000), await drain('beside', 1, 1_000)];
  };
}

export const SCENARIOS = {
  'shut-sources': { run: besideShut({ sources: 10_000, tasks: 1_000_000 }) },
  'nothing-waits': {
    run: async (bench) => {
      const next = await bench.claimer();
      const claim = async () => count(await next());
      await bench.enqueue(1, () => ({}));
      await warm(claim, 200);
      return [await bench.measure('empty', 800, claim)];
    },
  },
  'one-source': { run: overSources(1) },
  'hundred-sources': { run: overSources(100) },
  'fair-queue': { run: overSources(100, { fair: true }) },
  'emptied-sources': { run: behindEmptied() },
  'emptied-sources-fair': { run: behindEmptied({ fair: true }) },
  classes: { run: overClasses(2_000) },
  'drain-1': { run: drainWith(1) },
  'drain-4': { run: drainWith(4) },
};
