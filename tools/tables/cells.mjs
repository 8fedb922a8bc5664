// What the tables of models and of the zoo have in common: cells made of a run's report.

/** Share that is left, `25.9 %`; `–` where nothing was counted. */
export const left = ({ before, after }) =>
  before ? `${((100 * after) / before).toFixed(1)} %` : '–';

/** A difference or a tolerance, in two digits. */
export const digits = (x) => (x === 0 ? '0' : (x?.toExponential(1) ?? '–'));

export const milliseconds = (seconds) => `${(1000 * seconds).toFixed(0)} ms`;

// The file's own time, and the time of the proof, which runs the network.
const NOT_OURS = new Set(['read', 'write', 'prove']);

/** Seconds of all stages between read and write but the proof. */
export const secondsBetween = ({ timings }) =>
  Object.entries(timings).reduce((sum, [stage, time]) => sum + (NOT_OURS.has(stage) ? 0 : time), 0);

export const prunedGroups = ({ groups }) => groups.filter((g) => g.kept < g.size);

/** Map from each reason, less the node that is its instance, to the dimensions it pins. */
export function reasonsOf({ kept_whole: kept }) {
  const by = new Map();
  for (const { axis, reason } of kept) {
    const general = reason.replace(/ \([^()]*\)$/, '');
    by.set(general, [...(by.get(general) ?? []), axis]);
  }
  return by;
}

export const tableRow = (cells) => `| ${cells.join(' | ')} |`;
