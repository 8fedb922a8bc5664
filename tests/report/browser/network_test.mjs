// Opens pictures of networks in headless Chromium: are they drawn, do clicks and keys work, do they
// stay offline?
//
//   node network_test.mjs PARSIMONY WRITE_NETWORK CHROMIUM [FOLDER]
//
// FOLDER gets screenshots. Exit code 77: what drives the browser is not installed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { faint, launch, open, overflow, temporaryFolder, tests } from './browser.mjs';

const [parsimony, writeNetwork, chromium, pictures] = process.argv.slice(2);
const folder = temporaryFolder();
const browser = await launch(chromium);
const { check, failed } = tests();

/** Makes a network and its page; returns the page's address. */
function page(name, blocks, options, kind = []) {
  const model = join(folder, `${name}.onnx`);
  const html = join(folder, `${name}.html`);
  execFileSync(writeNetwork, [model, String(blocks), ...kind]);
  execFileSync(parsimony, ['-q', 'explain', model, '--html', html, ...options], { stdio: 'ignore' });
  return pathToFileURL(html).href;
}

async function show(address, options = {}) {
  const shown = await open(browser, address, { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce', ...options });
  await shown.page.waitForFunction(() => globalThis.parsimonyNetwork?.state.frames > 0, null, { timeout: 120000 });
  return shown;
}

/** Waits for the next picture. */
const painted = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(done));
}));

const boxNamed = (page, name) => page.evaluate((wanted) =>
  parsimonyNetwork.data.boxes.findIndex((box) => box.name === wanted), name);
const placeOf = (page, index) => page.evaluate((i) => parsimonyNetwork.place(i), index);
const chosen = (page) => page.evaluate(() => {
  const { box, group } = document.getElementById('picture').dataset;
  return { box: Number(box), group: Number(group) };
});
async function clickBox(page, index) {
  const { x, y, width, height } = await placeOf(page, index);
  await page.mouse.click(x + width / 2, y + height / 2);
  await painted(page);
}
const panelText = (page) => page.locator('#content').innerText();

/** Colours in the picture: how many different ones, and the one at a point of the window. */
const pixel = (page, x, y) => page.evaluate(([px, py]) => {
  const canvas = document.getElementById('picture');
  const ratio = devicePixelRatio;
  return [...canvas.getContext('2d').getImageData(px * ratio, py * ratio, 1, 1).data];
}, [x, y]);

try {
  const plain = page('plain', 3, []);
  const planned = page('planned', 3, ['--ratio', '0.5']);

  for (const width of [1280, 400]) {
    for (const colorScheme of ['light', 'dark']) {
      await check(`a network at ${width} in ${colorScheme}`, async () => {
        const { context, page: shown, said, asked } = await show(planned, { viewport: { width, height: 860 }, colorScheme });
        const { boxes, drawn } = await shown.evaluate(() => ({
          boxes: parsimonyNetwork.data.boxes.length, drawn: parsimonyNetwork.state.drawn }));
        assert.equal(boxes, 3 * 5 + 4 + 2);
        if (width > 1000) assert.equal(drawn, boxes, 'not all is in sight at first');
        assert.deepEqual(said, []);
        assert.deepEqual(asked, []);
        assert.ok((await overflow(shown)) <= 0, 'the page scrolls sideways');
        assert.deepEqual(await faint(shown), []);
        if (pictures) {
          mkdirSync(pictures, { recursive: true });
          await shown.screenshot({ path: join(pictures, `network-${width}-${colorScheme}.png`) });
        }
        await shown.evaluate(() => parsimonyNetwork.choose({ group: 0 }, { centre: true }));
        await painted(shown);
        assert.deepEqual(await faint(shown), []);
        assert.ok((await overflow(shown)) <= 0, 'a group scrolls sideways');
        if (pictures) await shown.screenshot({ path: join(pictures, `network-${width}-${colorScheme}-group.png`) });
        await context.close();
      });
    }
  }

  await check('boxes have the colour of their group', async () => {
    const { context, page: shown } = await show(plain);
    const [stem, first, relu, second] = await Promise.all(['h0', 'a0', 'r0', 'c0'].map(async (name) => {
      const { x, y, width, height } = await placeOf(shown, await boxNamed(shown, name));
      return String(await pixel(shown, x + width * 0.9, y + height * 0.5));
    }));
    assert.equal(stem, second, 'the residual sum ties them');
    assert.equal(first, relu);
    assert.notEqual(stem, first);
    await context.close();
  });

  await check('a click on a layer shows its group, one on the group its layers', async () => {
    const { context, page: shown, said } = await show(planned);
    const layer = await boxNamed(shown, 'a1');
    await clickBox(shown, layer);
    assert.deepEqual(await chosen(shown), { box: layer, group: -1 });
    const text = await panelText(shown);
    assert.match(text, /^← Overview\s+a1\s+Conv\s/);
    assert.match(text, /u1\n?\s*6×8×3×3/);
    const group = await shown.evaluate((i) => parsimonyNetwork.data.boxes[i].makes[0], layer);
    await shown.locator('#content .pill').first().click();
    await painted(shown);
    assert.deepEqual(await chosen(shown), { box: -1, group });
    const about = await panelText(shown);
    assert.match(about, /Would keep 3 of 6: 50 % go/);
    assert.match(about, /One channel costs/);
    assert.match(about, /Scores/);
    for (const name of ['a1', 'c1']) assert.ok(about.includes(name), `${name} is not listed`);
    await shown.locator('#content button', { hasText: 'c1' }).first().click();
    assert.equal((await chosen(shown)).box, await boxNamed(shown, 'c1'));
    assert.deepEqual(said, []);
    await context.close();
  });

  await check('what is not of the group fades', async () => {
    const { context, page: shown } = await show(plain);
    const other = await boxNamed(shown, 'a0');
    const at = async () => {
      const { x, y, width, height } = await placeOf(shown, other);
      return String(await pixel(shown, x + width * 0.9, y + height * 0.5));
    };
    const before = await at();
    const group = await shown.evaluate((i) => parsimonyNetwork.data.boxes[i].makes[0], await boxNamed(shown, 'a2'));
    await shown.evaluate((g) => parsimonyNetwork.choose({ group: g }), group);
    await painted(shown);
    assert.notEqual(await at(), before);
    await shown.keyboard.press('Escape');
    await painted(shown);
    assert.equal(await at(), before);
    await context.close();
  });

  await check('a layer that cannot shrink says why', async () => {
    const { context, page: shown } = await show(plain);
    await clickBox(shown, await boxNamed(shown, 'y'));
    assert.match(await panelText(shown), /Cannot shrink\s+fc\[1\] graph output "y"/);
    await context.close();
  });

  await check('costs without a plan, and no scores', async () => {
    const { context, page: shown } = await show(plain);
    await shown.evaluate(() => parsimonyNetwork.choose({ group: 1 }));
    const text = await panelText(shown);
    assert.match(text, /One channel costs\s+144 parameters\s+9.22 k MACs/);
    assert.doesNotMatch(text, /keep|Scores/);
    await context.close();
  });

  await check('wheel, keys and buttons move and zoom', async () => {
    const { context, page: shown } = await show(plain);
    const view = () => shown.evaluate(() => parsimonyNetwork.view);
    const start = await view();
    await shown.mouse.move(400, 400);
    await shown.keyboard.down('Control');
    await shown.mouse.wheel(0, -200);
    await shown.keyboard.up('Control');
    const closer = await view();
    assert.ok(closer.scale > start.scale);
    // What is under the pointer stays there.
    const fixed = (v) => (400 - v.x) / v.scale;
    assert.ok(Math.abs(fixed(closer) - fixed(start)) < 1e-6);
    await shown.mouse.wheel(0, 50);
    assert.ok(Math.abs((await view()).y - (closer.y - 50)) < 1e-6);
    await shown.locator('#picture').focus();
    await shown.keyboard.press('ArrowRight');
    assert.ok((await view()).x < closer.x);
    await shown.keyboard.press('-');
    assert.ok((await view()).scale < closer.scale);
    await shown.locator('#closer').click();
    await shown.locator('#whole').click();
    await painted(shown);
    const whole = await view();
    await shown.keyboard.press('+');
    assert.ok((await view()).scale > whole.scale);
    const from = await view();
    await shown.mouse.move(300, 300);
    await shown.mouse.down();
    await shown.mouse.move(340, 330, { steps: 4 });
    await shown.mouse.up();
    const to = await view();
    assert.ok(to.x > from.x + 20 && to.y > from.y + 10, 'dragging moves');
    assert.deepEqual(await chosen(shown), { box: -1, group: -1 }, 'dragging selects nothing');
    await context.close();
  });

  await check('two fingers zoom', async () => {
    const { context, page: shown } = await show(plain, { viewport: { width: 400, height: 860 }, hasTouch: true });
    const session = await context.newCDPSession(shown);
    const scale = () => shown.evaluate(() => parsimonyNetwork.view.scale);
    const before = await scale();
    const touch = (type, ...points) => session.send('Input.dispatchTouchEvent', {
      type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
    await touch('touchStart', [180, 300], [220, 300]);
    for (let i = 1; i <= 6; ++i) await touch('touchMove', [180 - 8 * i, 300], [220 + 8 * i, 300]);
    await touch('touchEnd');
    await painted(shown);
    assert.ok((await scale()) > before * 1.5, `${before} to ${await scale()}`);
    await context.close();
  });

  await check('search finds a layer and goes there', async () => {
    const { context, page: shown, said } = await show(plain);
    await shown.keyboard.press('/');
    await shown.keyboard.type('conv 1');
    const hits = await shown.locator('#found [role=option] .name').allInnerTexts();
    assert.deepEqual(hits, ['a1', 'c1']);
    await shown.keyboard.press('ArrowDown');
    await shown.keyboard.press('Enter');
    const layer = await boxNamed(shown, 'c1');
    assert.deepEqual(await chosen(shown), { box: layer, group: -1 });
    await painted(shown);
    const { x, y } = await placeOf(shown, layer);
    assert.ok(x > 0 && x < 900 && y > 0 && y < 860, 'it is in sight');
    await shown.locator('#query').fill('nothing like it');
    assert.match(await shown.locator('#found').innerText(), /No layer/);
    assert.deepEqual(said, []);
    await context.close();
  });

  await check('an address can name a group or a layer', async () => {
    for (const [hash, pattern] of [['#g1', /Group g1/], ['#c0', /^← Overview\s+c0/], ['#%ff', /Groups/], ['#none', /Groups/]]) {
      const { context, page: shown, said } = await show(plain + hash);
      assert.match(await panelText(shown), pattern, hash);
      assert.deepEqual(said, []);
      await context.close();
    }
  });

  await check('the sheet of a narrow window opens and closes', async () => {
    const { context, page: shown } = await show(plain, { viewport: { width: 400, height: 860 } });
    assert.equal(await shown.locator('#content').isVisible(), false);
    await shown.locator('#grip').click();
    assert.equal(await shown.locator('#content').isVisible(), true);
    await shown.locator('#grip').click();
    await clickBox(shown, await boxNamed(shown, 'h0'));
    assert.match(await panelText(shown), /^← Overview\s+h0/);
    const sheet = await shown.locator('#panel').boundingBox();
    await painted(shown);
    const { y, height } = await placeOf(shown, await boxNamed(shown, 'h0'));
    assert.ok(y + height <= sheet.y, 'the sheet lies over what was touched');
    await context.close();
  });

  await check('the colours follow the system', async () => {
    const { context, page: shown } = await show(plain, { colorScheme: 'light' });
    const { x, y, width, height } = await placeOf(shown, await boxNamed(shown, 'h0'));
    const at = async () => String(await pixel(shown, x + width * 0.9, y + height * 0.5));
    const before = await at();
    await shown.emulateMedia({ colorScheme: 'dark' });
    await painted(shown);
    assert.notEqual(await at(), before);
    await context.close();
  });

  await check('everything can be named and reached by keys', async () => {
    const { context, page: shown } = await show(planned);
    const nameless = await shown.evaluate(() =>
      [...document.querySelectorAll('button, input, canvas:not([aria-hidden])')].filter((element) =>
        !element.getAttribute('aria-label') && !element.textContent.trim()).map((element) => element.outerHTML));
    assert.deepEqual(nameless, []);
    await shown.locator('#content .row').first().focus();
    await shown.keyboard.press('Enter');
    assert.equal((await chosen(shown)).group, 0);
    await context.close();
  });

  await check('the page of a pruning', async () => {
    const model = join(folder, 'plain.onnx');
    const html = join(folder, 'pruned.html');
    execFileSync(parsimony, ['-q', 'prune', model, '-o', join(folder, 'small.onnx'), '--ratio', '0.5',
      '--no-verify', '--html', html], { stdio: 'inherit' });
    const { context, page: shown, said } = await show(pathToFileURL(html).href);
    assert.match(await panelText(shown), /^Pruned with --ratio 0.5\s/);
    await shown.evaluate(() => parsimonyNetwork.choose({ group: 1 }));
    assert.match(await panelText(shown), /Kept 3 of 6: 50 % gone/);
    assert.deepEqual(said, []);
    await context.close();
  });

  await check('nothing in a model is markup', async () => {
    const address = page('hostile', 3, ['--ratio', '0.5'], ['hostile']);
    const { context, page: shown, said, asked } = await show(address, { viewport: { width: 400, height: 860 } });
    const count = await shown.evaluate(() => parsimonyNetwork.data.boxes.length);
    for (let i = 0; i < count; ++i) await shown.evaluate((b) => parsimonyNetwork.choose({ box: b }), i);
    await shown.evaluate(() => parsimonyNetwork.choose({ group: 0 }));
    assert.ok((await overflow(shown)) <= 0, 'a group scrolls sideways');
    await shown.locator('#query').fill('script');
    assert.match(await shown.locator('#found').innerText(), /<\/script><script>harmed = 1<\/script>/);
    await shown.mouse.move(200, 120);
    await painted(shown);
    assert.deepEqual(said, []);
    assert.deepEqual(asked, []);
    assert.equal(await shown.evaluate(() => globalThis.harmed), undefined);
    assert.equal(await shown.locator('img, iframe, a, script[src]').count(), 0);
    assert.ok((await overflow(shown)) <= 0, 'the page scrolls sideways');
    await context.close();
  });

  await check('500 nodes scroll and zoom', async () => {
    const { context, page: shown, said } = await show(page('long', 100, ['--ratio', '0.5']));
    const spent = await shown.evaluate(async () => {
      const canvas = document.getElementById('picture');
      const frame = () => new Promise((done) => { requestAnimationFrame(done); });
      const wheel = (options) => canvas.dispatchEvent(new WheelEvent('wheel', { clientX: 450, clientY: 400, cancelable: true, ...options }));
      document.getElementById('whole').click();
      await frame();
      await frame();
      const { state } = parsimonyNetwork;
      const all = state.drawn;
      state.spent.length = 0;
      const start = performance.now();
      for (let i = 0; i < 60; ++i) {
        wheel(i < 20 ? { ctrlKey: true, deltaY: -15 } : i < 40 ? { deltaY: 60, deltaX: 20 } : { ctrlKey: true, deltaY: 15 });
        await frame();
      }
      const sorted = state.spent.toSorted((a, b) => a - b);
      return { all, frames: sorted.length, median: sorted[sorted.length >> 1], worst: sorted.at(-1), each: (performance.now() - start) / 60 };
    });
    console.log(`      ${spent.all} boxes: drawing takes ${spent.median.toFixed(1)} ms (at most ${spent.worst.toFixed(1)}), ` +
      `a frame ${spent.each.toFixed(1)} ms`);
    assert.equal(spent.all, 506);
    assert.ok(spent.frames >= 60);
    assert.deepEqual(said, []);
    await context.close();
  });
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failed() ? 1 : 0);
