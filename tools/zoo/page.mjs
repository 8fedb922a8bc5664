// docs/results/zoo.md from the ledger.

import { digits, left, milliseconds, tableRow } from '../tables/cells.mjs';
import { largestDifference } from './run.mjs';

const RUNS = [
  ['onnx:half-local', 'ONNX, 50 % of each group'],
  ['onnx:third-global', 'ONNX, 30 % of all channels together'],
  ['pt:half-local', 'TorchScript, 50 % of each group'],
  ['pt:third-global', 'TorchScript, 30 % of all channels together'],
];
const FORMATS = { onnx: 'ONNX', pt: 'TorchScript' };
const SHOWN_ERROR = 160;

/** @param networks [{name, kind, about, runs}], runs as runRecipe() gives them */
export function page(networks) {
  const ran = networks.filter(({ runs }) => Object.keys(runs).length > 0);
  const kinds = [...new Set(ran.map(({ kind }) => kind))];
  return `# The zoo

torchvision 0.14's networks as Debian's python3-torch exports them, with random weights under which no branch is silent
(\`tests/models/weights.py\`), pruned by L1 from ONNX (opset 16) and from traced TorchScript.

    tools/zoo.sh                # the runs that docs/results/zoo/ lacks, then this page
    tools/zoo.sh resnet18       # one network

- **exact**: the small network computes what the original with zeros in the removed slices computes.
- **exact\\***: so do all groups but those that pass a LayerNorm or a softmax; these are pruned too, and the small
  network computes what the original computes with the removed channels absent. With \`--exact-only\` such groups stay
  whole; for ONNX at 50 % that was run as well, and is in the column of that name.
- **exact†**: the network sorts or selects, and a last bit decides what. So its small one chose from the original's
  numbers; what it had itself to choose from, and all outputs, differ by no more than is said.
- **difference**: the largest relative one, of the command's own proof on libtorch and, for ONNX files below 2 GB,
  of ONNX Runtime's comparison, which shares no code with it (not for exact\\*, which it does not know). 1e-4
  is allowed.
- **time**: all stages between read and write but the proof, which runs the network; wall clock, the least of three runs.

${summary(networks)}
${kinds.map((kind) => section(kind, ran)).join('\n')}
${failures(ran)}
${exportErrors(networks)}
## Kept whole, and why

Dimensions of matrices and kernels, by reason; of ONNX at 50 %, else of TorchScript. Every network's first layer is tied
to its input, every last one to its output.

${ran.map(keptWhole).filter(Boolean).join('\n')}
`;
}

const WORDS = { mixes: 'exact\\*', FAILED: '**failed**' };
const chosen = (run) => run.choices || run.oracle?.choices;
const statusOf = (run) => (run ? (WORDS[run.status] ?? run.status) + (chosen(run) ? '†' : '') : '–');

const isGood = (run) => run && ['exact', 'mixes'].includes(run.status);

function summary(networks) {
  const rows = RUNS.flatMap(([key, title]) => {
    const all = networks.flatMap(({ name, runs }) => (runs[key] ? [{ name, ...runs[key] }] : []));
    if (all.length === 0) return [];
    const count = (status) => all.filter((run) => run.status === status).length;
    const times = all.filter((run) => run.seconds !== undefined);
    const slowest = times.reduce((a, b) => (b.seconds > a.seconds ? b : a), times[0]);
    const largest = Math.max(0, ...all.filter(isGood).map(largestDifference));
    const counts = [all.length, count('exact'), count('mixes'), count('whole'), count('FAILED')];
    const time = slowest ? `${milliseconds(slowest.seconds)} (${slowest.name})` : '–';
    return [tableRow([title, ...counts, digits(largest), time])];
  });
  return `| runs | networks | exact | exact\\* | whole | failed | largest difference | slowest |
|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`;
}

function section(kind, networks) {
  const rows = networks.filter((one) => one.kind === kind).map(networkRow);
  return `## ${kind.replace('_', ' ').replace(/^./, (c) => c.toUpperCase())}

| network | parameters | MACs | ONNX 50 % | left, MACs left | difference | time | only exact | ONNX 30 % global | TorchScript 50 % | difference | time | TorchScript 30 % global |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`;
}

function networkRow({ name, runs }) {
  const [onnx, onnxGlobal, script, scriptGlobal] = RUNS.map(([key]) => runs[key]);
  const some = [onnx, script, onnxGlobal, scriptGlobal].find((run) => run?.params);
  const exactOnly = runs['onnx:half-exact'];
  const million = (n) => (n ? `${(n / 1e6).toPrecision(3)} M` : '–');
  const facts = (run) =>
    isGood(run) ? [digits(largestDifference(run)), milliseconds(run.seconds)] : ['–', '–'];
  return tableRow([
    `\`${name}\``,
    million(some?.params.before),
    million(some?.macs?.before),
    statusOf(onnx),
    onnx?.params ? `${left(onnx.params)}, ${left(onnx.macs)}` : '–',
    ...facts(onnx),
    exactOnly ? `${statusOf(exactOnly)}, ${exactOnly.params ? left(exactOnly.params) : ''}` : '',
    statusOf(onnxGlobal),
    statusOf(script),
    ...facts(script),
    statusOf(scriptGlobal),
  ]);
}

function failures(networks) {
  const lines = networks.flatMap(({ name, runs }) =>
    Object.entries(runs)
      .filter(([, run]) => run.status === 'FAILED')
      .map(([key, { error }]) => `- \`${name}\`, ${key}: ${error.replace(/\s+/g, ' ').slice(0, SHOWN_ERROR)}`),
  );
  return lines.length > 0 ? `## Failed\n\n${lines.join('\n')}\n` : '';
}

function exportErrors(networks) {
  const lines = networks.flatMap(({ name, about }) =>
    Object.entries(about?.errors ?? {})
      .filter(([, error]) => error)
      .map(([form, error]) => `- \`${name}\`, ${FORMATS[form]}: ${error.slice(0, SHOWN_ERROR)}`),
  );
  return lines.length > 0
    ? `## What torch itself does not export\n\n${lines.join('\n')}\n`
    : '';
}

function keptWhole({ name, runs }) {
  const run = [runs['onnx:half-local'], runs['pt:half-local']].find((one) => one?.kept);
  const reasons = run?.kept.filter(([reason]) => !/^graph (input|output)/.test(reason)) ?? [];
  if (reasons.length === 0) return '';
  return `- **${name}**: ${reasons.map(([reason, count]) => `${reason} (${count})`).join('; ')}`;
}
