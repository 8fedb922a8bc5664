#!/usr/bin/env node
// The independent oracle: does the small model compute what the original computes with the planned
// slices set to zero? It shares no code with the library: own reader, own masking, ONNX Runtime.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { compare, DEFAULTS, smoke } from './ort/compare.mjs';
import { EXIT, reportError, UsageError } from './ort/errors.mjs';
import { DISTRIBUTIONS, parseSpec, readSpecTable, specsFor } from './ort/inputs.mjs';
import { comparisonText, json, rowText, smokeText, summaryText } from './ort/report.mjs';

const USAGE = `usage: ort_compare.mjs ORIGINAL.onnx SMALL.onnx PLAN.json [options]
       ort_compare.mjs --batch LIST.tsv [options]    rows of ORIGINAL, SMALL, PLAN, perhaps SPECs, D
       ort_compare.mjs --run MODEL.onnx... [options] does each run, and are its outputs finite?

  --input SPEC       1x3x32x32, 2x8:int64, :int64=16000 (a scalar); once per argument, in order
  --specs FILE       a table of file name, tab, SPECs: used where no --input is given
  --inputs N         random inputs to try (3, or 8 small ones); where the batch size is open,
                     one more has another one
  --seed S           where the random numbers begin (${DEFAULTS.seed})
  --distribution D   of float inputs: ${DISTRIBUTIONS.join(', ')} (${DEFAULTS.distribution})
  --also VALUE       compare an inner value that both models compute as well; may be repeated
  --tolerance T      instead of 1e-4 (float32) or 1e-2 (float16); either is raised to 4 times
                     the original's own noise
  --threads N        for ONNX Runtime (${DEFAULTS.threads})
  --json             one JSON object per model, one line each

exit: 0 exact, mixes, weak or finite; 1 mismatch, not finite, or an error among several models;
      2 usage; 3 the original cannot be run; 4 files`;

const FINE = ['exact', 'mixes', 'weak', 'finite'];

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      batch: { type: 'string' },
      run: { type: 'boolean' },
      input: { type: 'string', multiple: true },
      specs: { type: 'string' },
      inputs: { type: 'string' },
      seed: { type: 'string' },
      distribution: { type: 'string' },
      also: { type: 'string', multiple: true },
      tolerance: { type: 'string' },
      threads: { type: 'string' },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return EXIT.fine;
  }
  const options = readOptions(values);
  const table = values.specs === undefined ? undefined : readSpecTable(values.specs);
  const specsOf = (model, own = []) =>
    [own, values.input ?? [], specsFor(table, model)]
      .find((specs) => specs.length > 0)
      ?.map(parseSpec) ?? [];

  if (values.run) return runModels(positionals, specsOf, options, values.json);
  if (values.batch !== undefined) return compareBatch(values.batch, specsOf, options, values.json);
  if (positionals.length !== 3) throw new UsageError('wanted ORIGINAL.onnx SMALL.onnx PLAN.json');
  const [original, small, plan] = positionals;
  const result = await compare({ original, small, plan, specs: specsOf(original) }, options);
  console.log(values.json ? json(result) : comparisonText(result));
  return FINE.includes(result.verdict) ? EXIT.fine : EXIT.failed;
}

function readOptions({ inputs, seed, distribution, also, tolerance, threads }) {
  const positive = (name, text, fallback) => {
    const value = text === undefined ? fallback : Number(text);
    if (value !== undefined && !(value > 0))
      throw new UsageError(`--${name} "${text}": wanted a number above 0`);
    return value;
  };
  const whole = (name, text, fallback) => {
    const value = positive(name, text, fallback);
    if (value !== undefined && !Number.isInteger(value))
      throw new UsageError(`--${name} "${text}": wanted a whole number`);
    return value;
  };
  if (distribution !== undefined && !DISTRIBUTIONS.includes(distribution)) {
    throw new UsageError(
      `--distribution "${distribution}": wanted one of ${DISTRIBUTIONS.join(', ')}`,
    );
  }
  return {
    probes: whole('inputs', inputs),
    seed: whole('seed', seed, DEFAULTS.seed),
    threads: whole('threads', threads, DEFAULTS.threads),
    tolerance: positive('tolerance', tolerance),
    distribution: distribution ?? DEFAULTS.distribution,
    also: also ?? DEFAULTS.also,
  };
}

async function runModels(models, specsOf, options, asJson) {
  if (models.length === 0) throw new UsageError('--run: wanted at least one model');
  return forEachModel(
    models,
    async (model) => {
      const result = await smoke(model, specsOf(model), options);
      console.log(asJson ? json(result) : smokeText(result));
      return result;
    },
    (model, error) => ({ model, verdict: 'ERROR', notes: [error.message] }),
    asJson,
  );
}

async function compareBatch(list, specsOf, options, asJson) {
  const rows = readFileSync(list, 'utf8')
    .split('\n')
    .filter((row) => row.trim() && !row.startsWith('#'));
  const jobs = rows.map((row) => {
    const [original, small, plan, specs = '', distribution] = row.split('\t');
    if (!plan)
      throw new UsageError(`${list}: wanted ORIGINAL, SMALL and PLAN between tabs, found "${row}"`);
    const own = specs.split(/\s+/).filter(Boolean);
    return { original, small, plan, specs: specsOf(original, own), distribution };
  });
  return forEachModel(
    jobs,
    async (job) => {
      const own = job.distribution ? { ...options, distribution: job.distribution } : options;
      const result = await compare(job, own);
      console.log(asJson ? json(result) : rowText(result));
      return result;
    },
    ({ original, small, plan }, error) => ({
      original,
      small,
      plan,
      verdict: 'ERROR',
      notes: [error.message],
    }),
    asJson,
  );
}

/** One bad file must not keep the others from being run. */
async function forEachModel(items, run, failure, asJson) {
  const results = [];
  for (const item of items) {
    try {
      results.push(await run(item));
    } catch (error) {
      const isBug = error instanceof TypeError || error instanceof ReferenceError;
      if (isBug || items.length === 1) throw error;
      const failed = failure(item, error);
      results.push(failed);
      console.log(
        asJson ? json(failed) : `ERROR  ${failed.small ?? failed.model}: ${error.message}`,
      );
    }
  }
  if (!asJson && results.length > 1) console.log(summaryText(results));
  return results.every(({ verdict }) => FINE.includes(verdict)) ? EXIT.fine : EXIT.failed;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    process.exitCode = reportError('ort_compare.mjs', error, USAGE);
  },
);
