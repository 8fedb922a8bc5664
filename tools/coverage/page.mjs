// The tables of docs/results/coverage.md.

import { left } from '../tables/cells.mjs';
import { measured } from '../tables/measured.mjs';
import { FORMATS } from './prune.mjs';

const POINT = 0.01; // what the shares in two formats may differ by without a reason
const LARGE = 0.4; // what more is left than has one
const TITLES = { onnx: 'ONNX', pt: 'TorchScript', pt2: '.pt2' };
const COMMAND = ['tools/coverage.sh --pt2 PYTHON     # PYTHON: with torch.export'];

const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** Do the formats differ, is much left, or is something missing, and no reason given? */
export function lacksReason({ runs, reason }) {
  const all = Object.values(runs);
  const good = all.filter((run) => run.proven);
  const apart = (key) => Math.max(...good.map((run) => run[key])) - Math.min(...good.map((run) => run[key]));
  const large = good.some((run) => run.macs > LARGE);
  return !reason && (good.length < all.length || apart('params') > POINT || apart('macs') > POINT || large);
}

export function page(networks, torchvision, torchPruning) {
  const kinds = [...new Set(networks.map(({ kind }) => kind))];
  return {
    title: 'Coverage: architectures and formats',
    about:
      `${networks.length} architectures, each made small by tools/architectures with the blocks of the original and ` +
      'random weights, exported as ONNX (opset 17) and TorchScript by PyTorch 1.13 and as .pt2 by PyTorch 2.14; half ' +
      `of the channels of every group removed; and torchvision's ${torchvision.length} networks. ${counts(networks)} ` +
      'Cells: parameters left, MACs left; inputs and outputs stay, and are wide beside such small networks. A reason ' +
      'stands where the formats differ by more than one point, where more than 40 % of the MACs are left, or where a ' +
      'format is missing.',
    tables: [...kinds.map((kind) => kindTable(kind, networks)), torchvisionTable(torchvision, torchPruning)],
  };
}

function counts(networks) {
  const all = networks.flatMap(({ runs }) => Object.values(runs));
  const exported = all.filter((run) => run.exported);
  const proven = exported.filter((run) => run.proven);
  const missing = all.length - exported.length;
  return `Of ${exported.length} files ${proven.length} are pruned and proven; ${missing} PyTorch does not export.`;
}

function kindTable(kind, networks) {
  const rows = networks
    .filter((one) => one.kind === kind)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, runs, reason }) => [`\`${name}\``, size(runs), ...FORMATS.map((form) => cell(runs[form])), reason]);
  return {
    title: kind[0].toUpperCase() + kind.slice(1),
    ...measured(),
    command: COMMAND,
    columns: ['network', 'parameters', ...FORMATS.map((form) => TITLES[form]), 'reason'],
    rows,
  };
}

const size = (runs) => `${(Object.values(runs).find((run) => run.counts)?.counts.params.before ?? 0).toLocaleString('en')}`;

function cell(run) {
  if (!run.exported) return 'not exported';
  if (!run.params) return 'refused';
  return `${percent(run.params)}, ${percent(run.macs)}${run.proven ? '' : ', not proven'}`;
}

function torchvisionTable(networks, { prunes, fails, shares, source }) {
  const ours = (run) => (run ? `${left(run.params)}, ${left(run.macs)}` : '–');
  const theirs = (name) =>
    shares[name] ?? (prunes.includes(name) ? 'prunes' : fails.includes(name) ? 'fails' : '–');
  const count = (form) => networks.filter((one) => one[form]).length;
  const rows = networks.map(({ name, onnx, pt, pt2 }) => [
    `\`${name}\``,
    ours(onnx),
    ours(pt),
    pt2 ? `${pt2.params}, ${pt2.macs}`.replaceAll('%', ' %') : '–',
    theirs(name),
  ]);
  return {
    title: "Torchvision's networks",
    about:
      'ONNX from the ledger of [the zoo](zoo.md), which has commit, machine and proof of each; .pt2 from [Programs of ' +
      'torch.export](exported.md), for ' +
      `${count('pt2')} of them; TorchScript, which the zoo proves for all, by a run of its tool for ${count('pt')}. Torch-Pruning: what it publishes at half of the channels (${source}); "prunes" and ` +
      '"fails" are the lists there, "–" is not listed.',
    ...measured(),
    command: ['tools/zoo.sh --ledger FOLDER/zoo --runs pt:half-local NAME...', 'tools/coverage.sh --folder FOLDER'],
    columns: ['network', 'ONNX', 'TorchScript', '.pt2', 'Torch-Pruning'],
    rows,
  };
}
