// The panel. Names come from files: they only ever become text.

function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === 'class') element.className = value;
    else if (key === 'click') element.addEventListener('click', value);
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ''));
  return element;
}
function svg(tag, properties, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
const chip = (group) => {
  const element = el('span', { class: 'chip', 'aria-hidden': 'true' });
  element.style.background = strongOf(group);
  return element;
};
const groupButton = (g) =>
  el('button', { type: 'button', class: 'pill', click: () => choose({ group: g }, { centre: true }) }, chip(g), groups[g].id);
const boxButton = (b) =>
  el('button', { type: 'button', class: 'link', click: () => choose({ box: b }, { centre: true }) }, boxes[b].name || boxes[b].op);
const facts = (...rows) =>
  el('dl', { class: 'facts' }, rows.filter(Boolean).map(([name, ...value]) => el('div', {}, el('dt', {}, name), el('dd', {}, ...value))));
const change = (before, after, write = thousands) => (after === before ? [write(before)]
  : [el('span', { class: 'before' }, write(before)), ' → ', el('strong', {}, write(after)), el('span', { class: 'share' }, ` ${percent(after, before)}`)]);
const back = () => el('button', { type: 'button', class: 'back', click: () => choose({}, { open: false }) }, '← Overview');
const part = (title, ...children) => el('section', {}, el('h3', {}, title), ...children);
function bar(kept, whole, group) {
  const inner = el('span');
  inner.style.width = `${(100 * kept) / Math.max(1, whole)}%`;
  inner.style.background = strongOf(group);
  return el('span', { class: 'bar', 'aria-hidden': 'true' }, inner);
}
/** A list of buttons; a long one is folded. */
function many(list, make, most = 12) {
  const items = (from) => from.map((entry) => el('li', {}, make(entry)));
  const first = el('ul', { class: 'list' }, items(list.slice(0, most)));
  if (list.length <= most) return [first];
  return [first, el('details', {}, el('summary', {}, `${counted(list.length - most, 'more')}`.replace('mores', 'more')),
    el('ul', { class: 'list' }, items(list.slice(most))))];
}

function obstacleText([axis, size, pinned, reason]) {
  return [el('code', {}, axis), pinned < size ? ` ${thousands(pinned)} of ${thousands(size)}: ` : ' ', reason];
}

function overview() {
  const channels = groups.reduce((sum, group) => sum + group.size, 0);
  const kept = groups.reduce((sum, group) => sum + group.kept, 0);
  const [params, macs] = data.dense;
  const [smallParams, smallMacs] = data.small ?? data.dense;
  const inputs = data.inputs.map(({ name, shape, assumed }) =>
    `${name} ${shape ? `[${shape.join(', ')}]` : ''}${assumed ? ' (assumed)' : ''}`).join(', ');
  return [
    decided ? el('p', { class: 'asked' }, data.done ? 'Pruned with ' : 'Would be pruned with ', el('code', {}, data.asked)) : null,
    facts(
      ['Parameters', ...change(params, smallParams, long)],
      ['MACs', ...change(macs, smallMacs, short)],
      ['Peak memory', `${short(peakMemory)}B of activations${decided ? ', dense' : ''}`],
      ['Groups', thousands(groups.length)],
      ['Channels', ...change(channels, kept)]),
    el('p', { class: 'note' }, `MACs are multiply-adds for ${inputs || 'no input'}.`,
      data.uncounted.length > 0 ? ` ${counted(data.uncounted.length, 'node')} left out: not known.` : ''),
    legend(),
    part('Groups', el('p', { class: 'note' }, 'Channels that can only be removed together.'),
      groups.length === 0 ? el('p', {}, 'No channel of this network can be removed.')
        : el('ul', { class: 'rows' }, groups.map((group) => el('li', {}, groupRow(group))))),
    fixed(),
  ];
}

function groupRow(group) {
  const names = producers(group).map((b) => bare(boxes[b]));
  const amount = group.kept < group.size ? `${thousands(group.kept)} of ${thousands(group.size)}` : thousands(group.size);
  return el('button', { type: 'button', class: 'row', click: () => choose({ group: group.index }, { centre: true }) },
    chip(group.index), el('span', { class: 'id' }, group.id),
    el('span', { class: 'names' }, names.length > 0 ? ending(names[0], (name) => name.length <= 24) ?? names[0] : '–', names.length > 1 ? ` +${names.length - 1}` : ''),
    el('span', { class: 'amount' }, amount),
    decided ? bar(group.kept, group.size, group.index) : null);
}

function legend() {
  const swatch = (kind) => el('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' });
  const coloured = swatch('');
  coloured.style.background = `linear-gradient(90deg, ${strongOf(0)} 33%, ${strongOf(1)} 33% 66%, ${strongOf(2)} 66%)`;
  return el('ul', { class: 'legend' },
    el('li', {}, coloured, 'the group whose channels a layer produces'),
    el('li', {}, swatch('hatched'), 'cannot shrink'),
    decided ? el('li', {}, swatch('kept'), data.done ? 'what was kept' : 'what would be kept') : null,
    lines.some((line) => line.inside) ? el('li', {}, swatch('dashed'), 'runs inside the node') : null);
}

/** Reasons why layers cannot shrink, each with its layers. */
function fixed() {
  const reasons = new Map();
  for (const box of boxes) {
    if (!box.layer) continue;
    for (const [axis, , , reason] of box.obstacles) {
      if (!reasons.has(reason)) reasons.set(reason, []);
      reasons.get(reason).push({ box: box.index, axis });
    }
  }
  if (reasons.size === 0) return null;
  return part('Cannot shrink', [...reasons].map(([reason, list]) => el('details', {},
    el('summary', {}, reason, el('span', { class: 'amount' }, thousands(list.length))),
    many(list, ({ box, axis }) => [boxButton(box), ' ', el('code', {}, axis)]))));
}

/** The groups that a box makes and reads; one list where they are the same. */
function groupsOf(box) {
  const list = (verb, which) => which.length > 0 && part(`${verb} the channels of group${which.length > 1 ? 's' : ''}`,
    el('p', { class: 'pills' }, which.map(groupButton)));
  if (String(box.makes) === String(box.reads)) return [list('Passes', box.makes)];
  return [list('Makes', box.makes), list('Reads', box.reads)];
}

function aboutBox(box) {
  const weights = box.weights.map(([name, shape]) => el('tr', {}, el('td', {}, el('code', {}, name)), el('td', { class: 'number' }, shape.join('×') || 'scalar')));
  return [
    back(),
    el('h2', {}, box.name || box.op),
    el('p', { class: 'kind' }, isEnd(box) ? (box.sources.length > 0 ? 'Output of the network' : 'Input of the network') : box.op),
    facts(
      ['Result', ...(box.small ? [el('span', { class: 'before' }, plain(box.shape)), ' → ', el('strong', {}, plain(box.small))] : [plain(box.shape || '[?]')])],
      box.channels > 0 && ['Channels', ...change(box.channels, box.kept)],
      box.params > 0 && ['Parameters', thousands(box.params), el('span', { class: 'share' }, ` ${percent(box.params, data.dense[0])}`)],
      box.macs > 0 && ['MACs', short(box.macs), el('span', { class: 'share' }, ` ${percent(box.macs, data.dense[1])}`)],
      box.memory > 0 && ['Memory while it runs', `${short(box.memory)}B`, el('span', { class: 'share' }, ` ${percent(box.memory, peakMemory)} of the peak`)]),
    ...groupsOf(box),
    box.obstacles.length > 0
      ? part('Cannot shrink', el('ul', { class: 'why' }, box.obstacles.map((each) => el('li', {}, obstacleText(each)))))
      : cannotShrink(box) ? part('Cannot shrink', el('p', {}, 'No prunable channels pass through here.')) : null,
    weights.length > 0 ? part('Weights', el('table', {}, el('tbody', {}, weights))) : null,
    box.sources.length > 0 ? part('Reads', ...many([...new Set(box.sources)], boxButton)) : null,
    box.targets.length > 0 ? part('Is read by', ...many([...new Set(box.targets)], boxButton)) : null,
  ];
}

/** How the scores are spread; those that go are below those that stay. */
function histogram(group) {
  const { range: [least, median, most], kept, gone } = group.scores;
  const high = Math.max(...kept.map((count, i) => count + gone[i]), 1);
  const number = (value) => +value.toPrecision(3);
  const bars = kept.flatMap((count, i) => {
    const g = (60 * gone[i]) / high;
    const k = (60 * count) / high;
    return [
      gone[i] > 0 && svg('rect', { x: i * 10 + 0.5, y: 62 - g, width: 9, height: g, class: 'gone' }),
      count > 0 && svg('rect', { x: i * 10 + 0.5, y: 62 - g - k, width: 9, height: k, fill: strongOf(group.index) }),
    ].filter(Boolean);
  });
  const label = `Scores from ${number(least)} to ${number(most)}, median ${number(median)}`;
  return part('Scores', el('figure', {},
    svg('svg', { viewBox: '0 0 240 64', role: 'img', 'aria-label': label, preserveAspectRatio: 'none' }, ...bars,
      svg('line', { x1: 0, x2: 240, y1: 62.5, y2: 62.5, class: 'ground' })),
    el('figcaption', {}, el('span', {}, `${number(least)}`), el('span', {}, `median ${number(median)}`), el('span', {}, `${number(most)}`))),
  el('p', { class: 'note' }, 'Channels by score. ', el('span', { class: 'swatch gone', 'aria-hidden': 'true' }), data.done ? ' were removed, the others kept.' : ' would go, the others stay.'));
}

function aboutGroup(group) {
  const word = unit(group);
  const gone = group.size - group.kept;
  const roles = { out: 'makes', in: 'reads', with: 'follows' };
  // A normalisation has four vectors; they are one row.
  const rows = new Map();
  for (const [box, axis, role, indices, size] of group.members) {
    const key = `${box} ${role} ${indices} ${size}`;
    if (!rows.has(key)) rows.set(key, { box, role, indices, size, axes: [] });
    rows.get(key).axes.push(axis);
  }
  const members = [...rows.values()].map(({ box, role, indices, size, axes }) => el('tr', {},
    el('td', {}, box >= 0 ? boxButton(box) : '–', axes.map((axis) => el('code', { class: 'axis' }, axis))),
    el('td', { class: 'role' }, roles[role] ?? role), el('td', { class: 'number' }, indices === size ? thousands(size) : `${thousands(indices)} of ${thousands(size)}`)));
  const inMembers = new Set(group.members.map(([box]) => box));
  const others = group.boxes.filter((b) => !inMembers.has(b));
  const cost = ([params, macs], shares) => [[params, 'parameter', long], [macs, 'MAC', short]].map(([number, word, write], i) =>
    el('div', {}, `${write(number)} ${word}${number === 1 ? '' : 's'}`, shares ? el('span', { class: 'share' }, ` ${percent(number, data.dense[i])}`) : ''));
  return [
    back(),
    el('h2', {}, chip(group.index), `Group ${group.id}`),
    el('p', { class: 'kind' }, counted(group.size, word), group.granularity === 'channel' ? '' : `, by ${group.granularity}`),
    decided ? el('div', { class: 'outcome' },
      el('p', {}, data.done ? (gone > 0 ? 'Kept ' : 'All kept: ') : (gone > 0 ? 'Would keep ' : 'Would keep all '), el('strong', {}, gone > 0 ? `${thousands(group.kept)} of ${thousands(group.size)}` : thousands(group.size)),
        gone > 0 ? `: ${percent(gone, group.size)} ${data.done ? 'gone' : 'go'}` : ''),
      bar(group.kept, group.size, group.index)) : null,
    group.mixes_at ? el('p', { class: 'warning' }, `Mixes at ${group.mixes_at}: the remaining channels depend on the removed ones, so the small network is close to the original, not equal to it.`) : null,
    facts(
      [`One ${word} costs`, ...cost(group.channel, false)],
      gone > 0 && [`Alone it ${data.done ? 'saved' : 'saves'}`, ...cost(group.saved, true)]),
    group.scores ? histogram(group) : null,
    part('Weights', el('p', { class: 'note' }, 'In the picture, solid frames mark producers of the channels, dashed ones mark readers.'),
      el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'Layer and axis'), el('th', {}, 'Role'), el('th', { class: 'number' }, 'Indices'))), el('tbody', {}, members))),
    others.length > 0 ? part('Passes', ...many(others, (b) => [boxButton(b), ' ', el('span', { class: 'share' }, boxes[b].op)])) : null,
  ];
}

function showPanel() {
  content.replaceChildren(...(chosen.group >= 0 ? aboutGroup(groups[chosen.group])
    : chosen.box >= 0 ? aboutBox(boxes[chosen.box]) : overview()).filter(Boolean));
  content.scrollTop = 0;
  canvas.dataset.box = chosen.box;
  canvas.dataset.group = chosen.group;
}
