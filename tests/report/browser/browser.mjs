// What the tests of pages share: a browser, and what it says about a page.
import { existsSync, mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

export const temporaryFolder = () => mkdtempSync(join(tmpdir(), 'parsimony-page-'));

/** Headless Chromium; ends the process with 77 where what drives it is not installed. */
export async function launch(executablePath) {
  const cache =
    process.env.PARSIMONY_CACHE ??
    join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'parsimony');
  const driver = join(cache, 'browser', 'package.json');
  if (!existsSync(driver)) {
    console.error('tests/report/browser/install.sh has not been run');
    process.exit(77);
  }
  return createRequire(driver)('playwright-core').chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

/** Runs named tests and counts those that fail. */
export function tests() {
  let failures = 0;
  return {
    async check(name, run) {
      try {
        await run();
        console.log(`ok    ${name}`);
      } catch (error) {
        failures += 1;
        console.log(`FAIL  ${name}\n${error.stack}`);
      }
    },
    failed: () => failures,
  };
}

/** Opens a page and notes all that it says or asks for. */
export async function open(browser, address, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const said = [];
  const asked = [];
  page.on('console', (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => said.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    if (request.url() !== address && !request.url().startsWith('data:')) asked.push(request.url());
  });
  await page.goto(address);
  return { context, page, said, asked };
}

/** How much wider than the window a page is. */
export const overflow = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

/** Texts whose contrast with what is behind them is below WCAG's AA. */
export const faint = (page) => page.evaluate(() => {
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((c) => {
      const s = c / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const rgb = channels(getComputedStyle(at).backgroundColor);
      if (rgb.length < 4 || rgb[3] > 0) return rgb;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest('script, style')) continue;
    const style = getComputedStyle(element);
    const inChart = element.closest('svg');
    const colour = inChart ? style.fill : style.color;
    if (!/^rgb/.test(colour)) continue;
    const [a, b] = [light(channels(colour)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push(`${node.textContent.trim()}: ${ratio.toFixed(2)}`);
  }
  return found;
});
