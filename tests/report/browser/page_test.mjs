// Opens reports in headless Chromium and looks whether they are drawn, fit and stay offline.
//
//   node page_test.mjs PARSIMONY WRITE_LEDGER CHROMIUM [FOLDER]
//
// FOLDER gets screenshots. Exit code 77: what drives the browser is not installed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { faint, launch, open, overflow, temporaryFolder, tests } from './browser.mjs';

const [parsimony, writeLedger, chromium, pictures] = process.argv.slice(2);
const charts = ['front', 'accuracy', 'speedup', 'time', 'layers'];
const folder = temporaryFolder();

/** Makes the report of a sample; returns its address. */
function report(kind, ...options) {
  const runs = join(folder, kind);
  mkdirSync(runs);
  execFileSync(writeLedger, [runs, kind]);
  execFileSync(parsimony, ['-q', 'report', runs, ...options], { stdio: 'inherit' });
  return pathToFileURL(join(runs, 'report.html')).href;
}

async function drawn(page, names) {
  await page.waitForFunction(
    (wanted) => wanted.every((name) => document.getElementById(`chart-${name}`)?.dataset.drawn),
    names, { timeout: 120000 });
  return page.evaluate((wanted) => wanted.map((name) => {
    const place = document.getElementById(`chart-${name}`);
    const marks = [...place.querySelectorAll('[class*="mark-"] path, .mark-rule line')].filter(
      (mark) => mark.closest('.role-mark') && (mark.getBBox().width > 0 || mark.getBBox().height > 0));
    const box = place.querySelector('svg').getBoundingClientRect();
    return { name, marks: marks.length, width: box.width, room: place.clientWidth };
  }), names);
}

const browser = await launch(chromium);
const { check, failed } = tests();

try {
  const sweep = report('sweep');
  for (const width of [1280, 400]) {
    for (const colorScheme of ['light', 'dark']) {
      await check(`a sweep at ${width} in ${colorScheme}`, async () => {
        const options = { viewport: { width, height: 900 }, colorScheme };
        const { context, page, said, asked } = await open(browser, sweep, options);
        for (const chart of await drawn(page, charts)) {
          assert.ok(chart.marks > 0, `${chart.name} has no marks`);
          assert.ok(chart.width <= chart.room + 1, `${chart.name} is wider than its place`);
          assert.ok(chart.width > chart.room * 0.8, `${chart.name} does not fill its place`);
        }
        assert.deepEqual(said, []);
        assert.deepEqual(asked, []);
        assert.ok((await overflow(page)) <= 0, 'the page scrolls sideways');
        assert.deepEqual(await faint(page), []);
        if (pictures) {
          mkdirSync(pictures, { recursive: true });
          await page.screenshot({
            path: join(pictures, `report-${width}-${colorScheme}.png`), fullPage: true });
        }
        await context.close();
      });
    }
  }

  await check('the colours follow the system', async () => {
    const { context, page } = await open(browser, sweep, { colorScheme: 'light' });
    await drawn(page, charts);
    const colour = () => page.evaluate(() =>
      document.querySelector('#chart-layers .role-axis-label text').getAttribute('fill'));
    const before = await colour();
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForFunction((old) =>
      document.querySelector('#chart-layers .role-axis-label text')?.getAttribute('fill') !== old,
    before);
    await context.close();
  });

  await check('a mark tells its numbers', async () => {
    const { context, page, said } = await open(browser, sweep, {});
    await drawn(page, charts);
    await page.locator('#chart-time .role-mark path[aria-label*="phase: forward"]').first().hover();
    const tip = page.locator('#vg-tooltip-element.visible');
    await tip.waitFor();
    assert.match(await tip.innerText(), /phase/);
    assert.deepEqual(said, []);
    await context.close();
  });

  await check('one point alone', async () => {
    const { context, page, said } = await open(browser, report('one'), {});
    for (const chart of await drawn(page, ['front', 'accuracy', 'time', 'layers'])) {
      assert.ok(chart.marks > 0, `${chart.name} has no marks`);
    }
    assert.equal(await page.locator('#chart-speedup').count(), 0);
    assert.deepEqual(said, []);
    await context.close();
  });

  await check('the dense network alone', async () => {
    const { context, page, said } = await open(browser, report('dense'), {});
    await drawn(page, ['front', 'accuracy', 'time', 'layers']);
    assert.deepEqual(said, []);
    await context.close();
  });

  await check('nothing in a ledger is markup', async () => {
    const address = report('hostile', '--title', '</title><script>alert(1)</script>');
    const options = { viewport: { width: 400, height: 900 } };
    const { context, page, said, asked } = await open(browser, address, options);
    await drawn(page, ['front', 'accuracy', 'time', 'layers']);
    await page.locator('#chart-time .role-mark path[aria-label*="phase: forward"]').first().hover();
    await page.locator('#vg-tooltip-element.visible').waitFor();
    assert.deepEqual(said, []);
    assert.deepEqual(asked, []);
    assert.equal(await page.locator('img, iframe, a, script[src]').count(), 0);
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    assert.ok((await overflow(page)) <= 0, 'the page scrolls sideways');
    await context.close();
  });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed() ? 1 : 0);
