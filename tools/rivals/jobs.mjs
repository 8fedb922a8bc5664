// One tool on one network, in a process of its own; what came of it is kept in FOLDER.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const MINUTES = 60 * 1000;
const MEGABYTE = 2 ** 20;

/** The lines of JSON that measure.py prints; `program` may be several words. */
export function python(program, args, timeout = 600 * MINUTES) {
  const [first, ...more] = program.split(' ');
  const options = { encoding: 'utf8', maxBuffer: 1 << 28, timeout };
  const { stdout, stderr, status, signal } = spawnSync(first, [...more, join(here, 'measure.py'), ...args], options);
  const lines = (stdout ?? '').split('\n').filter((line) => line.startsWith('{'));
  if (lines.length > 0) return lines.map((line) => JSON.parse(line));
  const last = (stderr ?? '').trim().split('\n').at(-1);
  return [{ note: last || `ended with ${signal ?? status}` }];
}

/** Size in MB of the command, its component for libtorch, and the libraries that they load. */
export function loadedBy(command) {
  const component = join(dirname(command), '..', 'lib', 'parsimony', 'parsimony_torch.so');
  const files = [command, component].filter(existsSync).flatMap((file) => {
    const { stdout } = spawnSync('ldd', [file], { encoding: 'utf8' });
    return [file, ...[...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path)];
  });
  const whole = [...new Set(files.map((file) => realpathSync(file)))];
  return whole.reduce((sum, file) => sum + statSync(file).size, 0) / MEGABYTE;
}

export class Jobs {
  constructor({ folder, command, names, again }) {
    Object.assign(this, { folder, command, names, again });
  }

  /** What one process of `measure.py KIND ...` says of all networks that lack it. */
  together(kind, program, args) {
    const lacking = this.names.filter((name) => this.again || !this.read(kind, name));
    const found = lacking.length > 0 ? python(program, [...args, ...lacking]) : [];
    for (const entry of found) if (entry.name) this.keep(kind, entry.name, entry);
    return new Map(this.names.map((name) => [name, this.read(kind, name) ?? { note: 'no answer' }]));
  }

  export(program) {
    return this.together('export', program, ['export', this.folder]);
  }

  /** Finds the layers that `tool` can prune, and prunes them. */
  live(tool, program) {
    const layers = this.together(`layers.${tool}`, program, ['layers', tool]);
    const runs = this.all(tool, (name) => {
      if (!(layers.get(name).layers?.length > 0)) return { note: layers.get(name).note || 'no layer' };
      return python(program, ['run', tool, this.folder, name], 5 * MINUTES)[0];
    });
    return new Map([...runs].map(([name, run]) => [name, { ...layers.get(name), ...run }]));
  }

  exportOnnx(program) {
    const script = join(here, '..', 'coverage', 'export.py');
    spawnSync(program, [script, this.folder, 'onnx', ...this.names], { stdio: 'inherit' });
  }

  /** Prunes the .pt2 files; PyTorch runs the small ones and counts their MACs. */
  parsimony(program) {
    const runs = this.all('parsimony', (name) => this.pruned(name));
    const counts = this.together('count', program, ['count', this.folder]);
    return new Map([...runs].map(([name, run]) => [name, { ...this.counted(name, counts.get(name)), ...run }]));
  }

  /** What PyTorch counted; or Parsimony, where PyTorch does not even read the original that it wrote. */
  counted(name, count) {
    if (!count.unreadable) return count;
    const { macs } = JSON.parse(readFileSync(join(this.folder, `${name}.report.json`), 'utf8'));
    return { before: macs.before, macs: macs.after, unreadable: true };
  }

  /** onnxsim's files, whose MACs Parsimony counts: before and after by the same rules. */
  onnxsim(program) {
    return this.all('onnxsim', (name) => {
      const run = python(program, ['run', 'onnxsim', this.folder, name], 5 * MINUTES)[0];
      if (run.note) return run;
      const [before, after] = ['onnx', 'onnxsim.onnx'].map((suffix) => this.inspected(`${name}.${suffix}`));
      return { ...run, before: before.macs, macs: after.macs, note: before.note ?? after.note };
    });
  }

  inspected(file) {
    const args = ['inspect', '--json', join(this.folder, file)];
    const { stdout, stderr, status } = spawnSync(this.command, args, { encoding: 'utf8' });
    return status === 0 ? { macs: JSON.parse(stdout).totals.macs } : { note: stderr.trim() };
  }

  pruned(name) {
    const at = (suffix) => join(this.folder, `${name}.${suffix}`);
    rmSync(at('small.pt2'), { force: true });
    const args = ['prune', at('pt2'), '-o', at('small.pt2'), '--ratio', '0.5', '-q', '--report', at('report.json')];
    const measure = ['-f', '%U %S %M', '-o', at('time'), this.command, ...args, '--threads', '1'];
    const { status, stderr } = spawnSync('/usr/bin/time', measure, { encoding: 'utf8', timeout: 5 * MINUTES });
    if (status !== 0) return { note: stderr.trim() };
    const [user, system, kilobytes] = readFileSync(at('time'), 'utf8').trim().split('\n').at(-1).split(' ').map(Number);
    const { proof } = JSON.parse(readFileSync(at('report.json'), 'utf8'));
    return { seconds: user + system, megabytes: kilobytes / 1024, proven: Boolean(proof.ran && proof.holds) };
  }

  all(tool, run) {
    return new Map(this.names.map((name) => [name, this.one(tool, name, run)]));
  }

  one(tool, name, run) {
    const kept = this.again ? null : this.read(tool, name);
    return kept ?? this.keep(tool, name, run(name));
  }

  kept(tool, name) {
    return join(this.folder, 'results', tool, `${name}.json`);
  }

  keep(tool, name, entry) {
    mkdirSync(dirname(this.kept(tool, name)), { recursive: true });
    writeFileSync(this.kept(tool, name), JSON.stringify(entry));
    return entry;
  }

  read(tool, name) {
    const path = this.kept(tool, name);
    return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null;
  }
}
