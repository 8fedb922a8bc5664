// Where and when a measurement was made: what every table of docs/results says in its header.

import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

/** The commit of this tree; empty outside of a repository. */
function commit() {
  const options = { cwd: here, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
  try {
    return execFileSync('git', ['rev-parse', '--short=7', 'HEAD'], options).trim();
  } catch {
    return '';
  }
}

/** {date, commit, machine} of a measurement made now with a build of this tree. */
export function measured() {
  const processors = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    machine: `${processors[0].model.trim()}, ${processors.length} cores`,
  };
}

const FORMS = {
  date: /^\d{4}-\d\d-\d\d$/,
  commit: /^[0-9a-f]{7,40}$/,
  machine: /\S/,
};

/** What `where` lacks to be attributable, as text; empty if nothing. */
export const missing = (where) =>
  Object.keys(FORMS).filter((key) => !FORMS[key].test(where?.[key] ?? ''));

const LIST = /\[\n\s+"[^[\]{}]*?\n\s+\]/g;

/** JSON of a data file, each row on one line. */
export function asData(data) {
  const onOneLine = (list) => list.replace(/\s*\n\s*/g, ' ').replace('[ ', '[').replace(/ \]$/, ']');
  return JSON.stringify(data, null, 1).replace(LIST, onOneLine);
}
