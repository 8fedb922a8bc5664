// The tables of docs/results/rivals.md.

import { measured } from '../tables/measured.mjs';

const COMMAND = ['tools/rivals.sh --python PYTHON     # PyTorch 2.6 or newer'];
const QUOTED = {
  machine: 'none: quoted, not measured',
  command: ['tools/rivals.sh     # from tools/rivals/quoted.json'],
};

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const fixed = (x, places) => (x === undefined ? '–' : x.toFixed(places));

/** How a run ended: 'smaller', 'same' (nothing removed), 'wrong' (runs, and differs), or 'fails'. */
function outcome(run) {
  if (run.layers?.length === 0 && !run.note?.includes(': ')) return 'same';
  if (run.note && run.macs === undefined) return 'fails';
  if (run.runs === false) return 'fails';
  if (!(run.macs < run.before)) return 'same';
  return run.equal === false || run.proven === false ? 'wrong' : 'smaller';
}

export function page({ kinds, names, tools, exported, versions, loaded, quoted }) {
  const runs = new Map([...tools].map(([tool, all]) => [tool, judged(tool, all, exported)]));
  const about = { kinds, names, runs, versions, quoted, exported, loaded };
  return {
    title: 'Parsimony and other tools',
    about:
      'What others do better stands first. Then the same networks with every tool that could be installed where this ' +
      `was measured (${present(runs, quoted)}), and figures that others publish, quoted with their source.`,
    tables: [better(quoted), together(about), byKind(about), byNetwork(about), absent(about), figures(quoted)],
  };
}

function judged(tool, all, exported) {
  return new Map(
    [...all].map(([name, run]) => {
      const whole = tool === 'parsimony' ? { before: exported.get(name)?.macs, ...run } : run;
      return [name, { ...whole, outcome: outcome(whole), share: whole.macs / whole.before }];
    }),
  );
}

const present = (runs, { titles }) => [...runs.keys()].map((tool) => titles[tool]).join(', ');

function better({ better: rows, date: read }) {
  return {
    title: 'Where others are better',
    about: `Read in their repositories in ${read}, not measured. Date: of the source, where it has one.`,
    ...measured(),
    ...QUOTED,
    columns: ['tool', 'what it has that Parsimony lacks', 'source', 'date'],
    rows,
  };
}

function median(numbers) {
  const sorted = numbers.filter(Number.isFinite).sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length > 0 ? (sorted[Math.floor(middle)] + sorted[Math.ceil(middle) - 1]) / 2 : undefined;
}

const of = (runs, kind) => [...runs.values()].filter((run) => run.outcome === kind);

/** The columns of costs in which another tool is better. */
function ahead(rows, columns) {
  const costs = ['s', 'MB', 'loaded, MB'].map((name) => [name, columns.indexOf(name)]);
  const wins = rows.slice(1).flatMap((row) =>
    costs.filter(([, at]) => Number(row[at]) < Number(rows[0][at])).map(([name]) => `${row[0]} (${name})`),
  );
  return wins.length > 0 ? `Costs less than Parsimony: ${wins.join(', ')}. ` : '';
}

/** What Parsimony had proven, and PyTorch does not run. */
function overlooked(runs) {
  const missed = of(runs.get('parsimony'), 'fails').filter((run) => run.proven).length;
  if (missed === 0) return '';
  return (
    `Parsimony had proven ${missed} of the files that PyTorch then did not run: the proof runs the network that ` +
    'Parsimony has read, not the file. '
  );
}

function unreadable(runs) {
  const count = [...runs.get('parsimony').values()].filter((run) => run.unreadable).length;
  if (count === 0) return '';
  return `Of the .pt2 files PyTorch does not read ${count} that it wrote itself; there Parsimony's counts stand. `;
}

function together({ names, runs, versions, quoted, exported, loaded }) {
  const exports = [...exported.values()].map((run) => run.seconds);
  const alone = [...(runs.get('torch_ao') ?? new Map()).values()].filter((run) => run.alone).length;
  const rows = [...runs].map(([tool, all]) => {
    const small = of(all, 'smaller');
    return [
      quoted.titles[tool],
      `${small.length} of ${names.length}`,
      ...['same', 'wrong', 'fails'].map((kind) => String(of(all, kind).length)),
      percent(median(small.map((run) => run.share)) ?? 1),
      percent(median([...all.values()].map((run) => (run.outcome === 'smaller' ? run.share : 1)))),
      fixed(median(small.map((run) => run.seconds)), 1),
      fixed(median(small.map((run) => run.megabytes)), 0),
      fixed(tool === 'parsimony' ? loaded : median(small.map((run) => run.loaded)), 0),
      quoted.proof[tool],
      quoted.needs[tool],
    ];
  });
  const columns = [
    ...['tool', 'smaller', 'unchanged', 'differs', 'fails', 'MACs left', 'MACs left, all', 's', 'MB', 'loaded, MB'],
    ...['proof', 'needs'],
  ];
  return {
    title: 'The same networks',
    about:
      `${ahead(rows, columns)}${overlooked(runs)}The ${names.length} architectures of [coverage](coverage.md), half ` +
      'of the channels by L1 norm. Smaller: the small network runs, has fewer MACs, and gives what the masked ' +
      'original gives (where a tool has no masks, outputs of the same shapes). MACs left: the median of those, and ' +
      'of all networks, where one that did not become smaller keeps all. MACs are counted by PyTorch ' +
      '(torch.utils.flop_counter), those of ONNX files by `parsimony inspect`. Time and memory: medians of a whole ' +
      'process, start, libraries and a run of the small network included, seconds of the processor with one thread, ' +
      'peak in MB; loaded: size in MB of the programs, libraries and Python modules that such a process loads. ' +
      `PyTorch ${versions.torch}${others(versions)}. Parsimony reads .pt2 files; exporting one takes ` +
      `${fixed(median(exports), 1)} s more in a running Python, which the others do not need. Its time has the ` +
      `proof. ${unreadable(runs)}torch.ao.pruning (SaliencyPruner) gets every help: BatchNorm is folded first, and ` +
      'it is told the layers with which it copes, found by trying each alone, which is not in its time; with its ' +
      `own choice of layers it prunes ${alone}. No tool is told the heads of attention.`,
    ...measured(),
    command: COMMAND,
    columns,
    rows,
  };
}

function others({ torch, ...rest }) {
  return Object.entries(rest).map(([name, version]) => `, ${name} ${version}`).join('');
}

function byKind({ kinds, names, runs, quoted }) {
  const rows = [...new Set(names.map((name) => kinds[name]))].map((kind) => {
    const those = names.filter((name) => kinds[name] === kind);
    const cells = [...runs.values()].map((all) => cellOfKind(those.map((name) => all.get(name))));
    return [kind, String(those.length), ...cells];
  });
  return {
    title: 'By kind of network',
    about: 'Networks that became smaller, and the median of the MACs left, over all networks of the kind.',
    ...measured(),
    command: COMMAND,
    columns: ['kind', 'networks', ...[...runs.keys()].map((tool) => quoted.titles[tool])],
    rows,
  };
}

function cellOfKind(those) {
  const small = those.filter((run) => run.outcome === 'smaller');
  return `${small.length}, ${percent(median(those.map((run) => (run.outcome === 'smaller' ? run.share : 1))))}`;
}

function byNetwork({ names, runs, quoted }) {
  const rows = [...names].sort().map((name) => {
    return [`\`${name}\``, ...[...runs.values()].map((all) => cell(all.get(name)))];
  });
  return {
    title: 'Every network',
    about: 'MACs left. "Unchanged": no layer that the tool can prune. "Fails": the first words of its error.',
    ...measured(),
    command: COMMAND,
    columns: ['network', ...[...runs.keys()].map((tool) => quoted.titles[tool])],
    rows,
  };
}

const ERROR = 80; // characters of an error

function cell(run) {
  if (run.outcome === 'smaller') return percent(run.share);
  if (run.outcome === 'same') return 'unchanged';
  if (run.outcome === 'wrong') return `${percent(run.share)}, differs`;
  const note = (run.note ?? 'does not run').replaceAll('|', '/');
  return `fails: ${note.length > ERROR ? `${note.slice(0, ERROR)}…` : note}`;
}

function absent({ runs, quoted: { absent: all, titles } }) {
  const rows = all.filter(([tool]) => ![...runs.keys()].some((key) => tool.startsWith(titles[key])));
  return {
    title: 'Not measured',
    about: 'Debian and npm do not have them, or there is nothing to measure.',
    ...measured(),
    ...QUOTED,
    columns: ['tool', 'where it comes from', 'in Debian or npm', 'here'],
    rows,
  };
}

function figures({ figures: rows, date }) {
  return {
    title: 'Published by others',
    about:
      `Quoted, read in ${date}; nothing of this was repeated here, and data, training and machines differ from those ` +
      'of our pages: [recovery](recovery.md), [data sets](data_sets.md), [language models](language_models.md).',
    ...measured(),
    ...QUOTED,
    columns: ['tool', 'network, data, method', 'result', 'cost', 'source'],
    rows,
  };
}
