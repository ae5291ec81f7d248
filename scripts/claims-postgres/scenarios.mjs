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

export const SCENARIOS = {
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
};
