// docs/results/zoo.md from the ledger; written by ../results.mjs.

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

const KINDS = ['classification', 'segmentation', 'detection', 'video', 'optical_flow'];

/** @param networks [{name, kind, measured, about, runs}], runs as runRecipe() gives them */
export function page(networks) {
  const ran = networks.filter(({ runs }) => Object.keys(runs).length > 0);
  const kinds = KINDS.filter((kind) => ran.some((network) => network.kind === kind));
  return `# The zoo: torchvision's networks

torchvision 0.14's networks as Debian's python3-torch exports them, with random weights under which no branch is silent
(\`tests/models/weights.py\`), pruned by L1 norm from ONNX (opset 16) and from traced TorchScript. Every row names the
date and the commit that recorded it. Machine: ${machines(ran)}.

    tools/zoo.sh                # measures what docs/results/zoo/ lacks
    tools/zoo.sh resnet18       # one network
    node tools/results.mjs      # writes this page

- **exact**: the small network computes what the original computes with the removed slices set to zero.
- **exact\\***: some groups pass a LayerNorm or a softmax. They are pruned as well, and the small network computes what
  the original computes with the removed channels absent. \`--exact-only\` does not prune such groups; the column of that name has
  ONNX at 50 % with this option.
- **exact†**: the network sorts or selects, and the last bit of a float decides. The small network was given the
  original's operands to choose from; its own operands and all outputs differ by no more than the figure shown.
- **not pruned**: every dimension is pinned.
- **difference**: the largest relative difference found by the proof on libtorch and, for ONNX files below 2 GB and
  results that are not exact\\*, by ONNX Runtime. 1e-4 is allowed.
- **time**: all stages between read and write except the proof; wall clock, the minimum of three runs; –
  where other work ran beside it.

${summary(networks)}
${kinds.map((kind) => section(kind, ran)).join('\n')}
${failures(ran)}
${exportErrors(networks)}
## Not pruned, and why

Pinned dimensions of matrices and kernels, by reason: from ONNX at 50 %, otherwise from TorchScript. The first layer is
always tied to the input and the last one to the output; these are not listed.

${ran.map(keptWhole).filter(Boolean).join('\n')}
`;
}

const WORDS = { mixes: 'exact\\*', whole: 'not pruned', FAILED: '**failed**' };
const chosen = (run) => run.choices || run.oracle?.choices;
const statusOf = (run) => (run ? (WORDS[run.status] ?? run.status) + (chosen(run) ? '†' : '') : '–');

/** Of each run; earlier ledgers have one for all runs of a network. */
export const occasions = ({ measured, runs }) =>
  Object.values(runs).map((run) => run.measured ?? measured);

const distinct = (texts) => [...new Set(texts)].join('; ');

const machines = (networks) =>
  distinct(networks.flatMap(occasions).map(({ machine }) => machine));

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
  return `| runs | networks | exact | exact\\* | not pruned | failed | largest difference | slowest |
|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`;
}

function section(kind, networks) {
  const rows = networks.filter((one) => one.kind === kind).map(networkRow);
  return `## ${kind.replace('_', ' ').replace(/^./, (c) => c.toUpperCase())}

| network | parameters | MACs | ONNX 50 % | left, MACs left | difference | time | only exact | ONNX 30 % global | TorchScript 50 % | difference | time | TorchScript 30 % global | measured |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`;
}

function networkRow({ name, measured, runs }) {
  const recorded = occasions({ measured, runs }).map(({ date, commit }) => `${date}, \`${commit}\``);
  const [onnx, onnxGlobal, script, scriptGlobal] = RUNS.map(([key]) => runs[key]);
  const some = [onnx, script, onnxGlobal, scriptGlobal].find((run) => run?.params);
  const exactOnly = runs['onnx:half-exact'];
  const million = (n) => (n ? `${(n / 1e6).toPrecision(3)} M` : '–');
  const time = ({ seconds }) => (seconds === undefined ? '–' : milliseconds(seconds));
  const facts = (run) => (isGood(run) ? [digits(largestDifference(run)), time(run)] : ['–', '–']);
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
    distinct(recorded),
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
    ? `## Not exported by torch\n\n${lines.join('\n')}\n`
    : '';
}

function keptWhole({ name, runs }) {
  const run = [runs['onnx:half-local'], runs['pt:half-local']].find((one) => one?.kept);
  const reasons = run?.kept.filter(([reason]) => !/^graph (input|output)/.test(reason)) ?? [];
  if (reasons.length === 0) return '';
  return `- **${name}**: ${reasons.map(([reason, count]) => `${reason} (${count})`).join('; ')}`;
}
