#!/usr/bin/env node
// Draws one group before and after: the weights of the residual block of examples/models/mnist_cnn.onnx
// as a plan slices them, the group's channels as stripes.
//
//   parsimony prune examples/models/mnist_cnn.onnx -o small.onnx --ratio 0.5 --plan plan.json
//   node tools/group_figure.mjs plan.json > docs/images/group.svg

import { readFileSync } from 'node:fs';

const GROUP = 'g0';
// Name, tensor, extent of the axis that is not the group's.
const LAYERS = [
  ['conv', 'stem.conv.weight', 1],
  ['conv 1', 'block.conv1.weight', 32],
  ['conv 2', 'block.conv2.weight', 32],
  ['depthwise', 'depthwise.conv.weight', 1],
  ['pointwise', 'pointwise.conv.weight', 48],
];
const SKIP = [0, 2]; // the residual connection: from behind this layer to behind that one
const SCALE = 3.4;
const GAP = 66;
const HEIGHT = 268;
const WIDTH = 760;
const KEPT = '#2f6fde';
const REMOVED = '#f0a35e';
const INK = '#30363d';

const [file] = process.argv.slice(2);
if (!file) {
  console.error('usage: group_figure.mjs PLAN.json');
  process.exit(2);
}
const group = JSON.parse(readFileSync(file, 'utf8')).groups.find(({ id }) => id === GROUP);
const slices = new Map(group.slices.map((slice) => [slice.tensor, slice]));
console.log(picture());

function picture() {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${2 * HEIGHT}" font-family="sans-serif" font-size="13" fill="${INK}">
<rect width="${WIDTH}" height="${2 * HEIGHT}" rx="8" fill="#fff"/>
${panel(0, `Before: group ${GROUP} has ${group.size} channels, and ${group.size - group.kept} are to go (orange)`, false)}
${panel(HEIGHT, `After: ${group.kept} channels, removed from every weight that produces or reads them`, true)}
</svg>`;
}

function panel(top, title, after) {
  const middle = top + 150;
  let x = 44;
  const drawn = LAYERS.map(([name, tensor, other]) => {
    const slice = slices.get(tensor);
    const box = boxOf(slice, other, after);
    const placed = { name, slice, x, y: middle - box.height / 2, ...box };
    x += box.width + GAP;
    return placed;
  });
  const text = `<text x="20" y="${top + 28}" font-size="15" font-weight="bold">${title}</text>`;
  return [text, ...drawn.map((one) => weight(one, after)), ...arrows(drawn, middle, after)].join('\n');
}

function boxOf({ axis, size, keep }, other, after) {
  const along = (after ? keep.length : size) * SCALE;
  const across = Math.max(other * SCALE, 16);
  return axis === 0 ? { width: across, height: along } : { width: along, height: across };
}

/** One weight: rows are outputs, columns inputs; a stripe for each channel of the group. */
function weight({ name, slice, x, y, width, height }, after) {
  const kept = new Set(slice.keep);
  const shown = [...Array(slice.size).keys()].filter((i) => !after || kept.has(i));
  const stripes = shown.map((index, place) => {
    const fill = kept.has(index) ? KEPT : REMOVED;
    const [dx, dy] = slice.axis === 0 ? [0, place * SCALE] : [place * SCALE, 0];
    const [w, h] = slice.axis === 0 ? [width, SCALE - 0.7] : [SCALE - 0.7, height];
    return `<rect x="${r(x + dx)}" y="${r(y + dy)}" width="${r(w)}" height="${r(h)}" fill="${fill}"/>`;
  });
  const label = `<text x="${r(x + width / 2)}" y="${r(y + height + 18)}" text-anchor="middle">${name}</text>`;
  return [...stripes, label].join('');
}

function arrows(drawn, middle, after) {
  const count = after ? group.kept : group.size;
  const ends = drawn.map(({ x, width }) => x + width);
  const lines = drawn.map(({ slice }, i) => {
    const next = drawn[i + 1];
    const to = next ? next.x - 6 : ends[i] + 40;
    const ours = slice.axis === 0; // what it makes are the group's channels
    const text = ours ? `<text x="${r((ends[i] + to) / 2 + (i === SKIP[1] ? 10 : 0))}" y="${middle - 8}" text-anchor="middle" fill="${KEPT}">${count}</text>` : '';
    return arrow(ends[i] + 6, to, middle) + text;
  });
  const [from, to] = SKIP.map((layer) => ends[layer] + 16);
  const height = middle - 96;
  const path = `M${r(from)} ${middle} V${height} H${r(to)} V${middle}`;
  const plus = `<circle cx="${r(to)}" cy="${middle}" r="8" fill="#fff" stroke="${INK}"/><text x="${r(to)}" y="${middle + 5}" text-anchor="middle">+</text>`;
  return [...lines, `<path d="${path}" fill="none" stroke="${INK}"/>`, plus];
}

function arrow(from, to, y) {
  const head = `M${r(to - 6)} ${y - 4} L${r(to)} ${y} L${r(to - 6)} ${y + 4}`;
  return `<path d="M${r(from)} ${y} H${r(to)} ${head}" fill="none" stroke="${INK}"/>`;
}

function r(number) {
  return Number(number.toFixed(1));
}
