// The figures of scale.mjs as a page.

const table = (head, rows) =>
  [head, head.map((_, i) => (i === 0 ? '---' : '---:')), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
const percent = (share) => `${(100 * share).toFixed(0)} %`;
const signed = (share) => `${share < 0 ? '−' : '+'}${(100 * Math.abs(share)).toFixed(0)} %`;
const ms = (seconds) => (seconds < 0.1 ? (1000 * seconds).toFixed(1) : (1000 * seconds).toFixed(0));

/** Prose in lines of 120 columns; tables, formulas and headings as they are. */
function wrapped(text) {
  const fill = (words, indent) => {
    const lines = [''];
    for (const word of words) {
      const line = lines.at(-1);
      if (line && line.length + 1 + word.length > 120) lines.push(indent + word);
      else lines[lines.length - 1] = line ? `${line} ${word}` : word;
    }
    return lines.join('\n');
  };
  const block = (each) => {
    if (/^([|#]|    )/.test(each)) return each;
    const items = each.split(/\n(?=- )/);
    return items.map((item) => fill(item.split(/\s+/), item.startsWith('- ') ? '  ' : '')).join('\n');
  };
  return text.trim().split(/\n\n+/).map(block).join('\n\n') + '\n';
}

export function page({ date, commit, machine, links, model, errors, assumed, many }) {
  const measured = links.map((link) => [
    `${link.network}, ${(link.bytes / 1e6).toFixed(1)} MB`,
    `${link.delay_ms}`,
    `${link.rate_mbit}`,
    ms(link.seconds),
    `${ms(link.least)} – ${ms(link.most)}`,
    ms(link.computed),
    signed(link.error),
    link.fitted ? 'fitted' : 'held back',
  ]);
  const rates = [...new Set(many.map((row) => row.gbit))];
  const counts = [...new Set(many.map((row) => row.ranks))];
  const at = (ranks, gbit) => many.find((row) => row.ranks === ranks && row.gbit === gbit);
  const figures = counts.map((ranks) => [
    `${ranks}`,
    ...rates.map((gbit) => `${ms(at(ranks, gbit).dense)} / ${ms(at(ranks, gbit).pruned)}`),
  ]);
  const saved = (ranks, gbit) => percent(1 - at(ranks, gbit).pruned / at(ranks, gbit).dense);
  return wrapped(`# What more ranks cost

A step of [training in several processes](../guide/processes.md) takes as long as its computation, and what the gradients
take beyond the backward pass that goes on meanwhile:

    step = compute + max(0, communication − overlap · backward)
    communication = latency · 2 (n − 1) · buckets + 2 (n − 1) / n · bytes / bandwidth

n is the number of ranks, latency the seconds of one message; the rest is a ring all-reduce. Backward is taken as two
thirds of compute.

## Two ranks, measured

Two network namespaces on one machine, joined by \`tools/ranks/link.py\`; both ranks and the link share its processor, one
thread each. The network \`cnn\` of the command, batches of 64, first dense, then with half of the channels of its
convolutions. Milliseconds of a step: the median of ${Math.min(...links.map((link) => link.steps))} steps or more, the least and the most.
Computed and error: the model, whose numbers come from the four corners of the grid alone; on those the median error is
${percent(errors.fitted.median)}, on links held back ${errors.held_back ? `${percent(errors.held_back.median)}, the largest ${percent(errors.held_back.most)}` : 'none was measured'}.

${table(['network, gradients', 'delay, ms', 'Mbit/s', 'measured', 'from – to', 'computed', 'error', ''], measured)}

Compute, from the median of the forward passes: ${ms(model.compute.dense)} ms dense, ${ms(model.compute.pruned)} ms pruned. Fitted: a message takes
${model.rounds.toFixed(2)} times the delay of the link; a byte costs ${(model.perByte * 1e9).toFixed(1)} ns beside the link's rate, which is the work of Gloo,
of TCP and of the link's program; ${percent(model.overlap)} of the backward pass hide communication. The last two are hardly told
apart here, because bytes and backward shrink alike; their sum is what the errors speak of.
The formula was chosen with an earlier run of these measurements at hand.

${date}, commit ${commit}, ${machine}. Again: \`node tools/ranks/scale.mjs --page scale.md PARSIMONY > scale.json\`, as
root.

## Many ranks, computed

Nothing here is measured. Milliseconds that the gradients of a network with ${(assumed.parameters / 1e6).toFixed(1)} million parameters (the size of
ResNet-50) take, dense / pruned by half, if nothing is hidden by the backward pass. Assumed are ${(assumed.latency * 1e6).toFixed(0)} µs for a message,
buckets of ${assumed.bucket / 2 ** 20} MiB after a small first one, a network that all ranks can load at once, and hosts that can fill it.

${table(['ranks', ...rates.map((gbit) => `${gbit} Gbit/s`)], figures)}

- Bytes do not grow with ranks (2 (n − 1) / n approaches 2); messages do. With ${counts.at(-1)} ranks at ${rates.at(-1)} Gbit/s, messages are most
  of the time.
- Half of the parameters save ${saved(counts[0], rates[0])} with ${counts[0]} ranks at ${rates[0]} Gbit/s, and ${saved(counts.at(-1), rates.at(-1))} with ${counts.at(-1)} at ${rates.at(-1)} Gbit/s, where fewer buckets mean
  fewer messages.
- What the backward pass hides has to be subtracted; on one core that the ranks and the link share, that is little.

## Limits

- One machine measured two ranks; that all-reduce follows the formula for more than two was not measured.
- Gloo sends through the processor. A byte costs each host what the memory and TCP cost; ${(model.perByte * 1e9).toFixed(1)} ns a byte, as measured
  here with both ranks and the link on one core, is a rate of ${(8 / (model.perByte * 1e9)).toFixed(1)} Gbit/s. A link that is faster than its hosts
  gives the hosts' rate.
- All ranks are taken to be equally fast; a step lasts as long as that of the slowest.
`);
}
