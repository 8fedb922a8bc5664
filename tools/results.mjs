#!/usr/bin/env node
// Renders docs/results/*.md from docs/results/data/*.json and the ledger of the zoo.
//
//   node tools/results.mjs            writes the pages
//   node tools/results.mjs --check    1 if a page is not what its data give, or a table does not say
//                                     when, from which commit, where and by which command it was made
//
// A data file: {"title", "about", "tables": [{"title", "about", "date", "commit", "machine",
// "command": [line], "columns": [text], "rows": [[text]]}]}. A row may be {"date", "commit",
// "cells"} where rows of one table were measured at different times.

import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { tableRow } from './tables/cells.mjs';
import { missing } from './tables/measured.mjs';
import { occasions, page as zooPage } from './zoo/page.mjs';

const results = join(dirname(fileURLToPath(import.meta.url)), '..', 'docs', 'results');
const NOTICE = '<!-- Written by tools/results.mjs: change the data, not this page. -->';
const faults = [];

const pages = new Map();
for (const name of listed('data')) {
  pages.set(`${name}.md`, rendered(name, read('data', name)));
}
pages.set('zoo.md', zooPage(listed('zoo').map((name) => network(name, read('zoo', name)))));
pages.set('README.md', index());

const check = process.argv.includes('--check');
for (const [name, text] of pages) {
  const path = join(results, name);
  const whole = `${NOTICE}\n\n${text.trimEnd()}\n`;
  if (!check) writeFileSync(path, whole);
  else if (!existsSync(path) || readFileSync(path, 'utf8') !== whole) {
    faults.push(`docs/results/${name} is not what its data give; run node tools/results.mjs`);
  }
}
for (const name of readdirSync(results).filter((one) => one.endsWith('.md'))) {
  if (!pages.has(name)) faults.push(`docs/results/${name} has no data`);
}
for (const fault of faults) console.error(`results: ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;

function listed(folder) {
  const files = readdirSync(join(results, folder)).filter((name) => name.endsWith('.json'));
  return files.map((name) => basename(name, '.json')).sort();
}

function read(folder, name) {
  return JSON.parse(readFileSync(join(results, folder, `${name}.json`), 'utf8'));
}

function rendered(name, { title, about, tables }) {
  const parts = tables.map((table) => section(`data/${name}.json, "${table.title}"`, table));
  return [`# ${title}`, wrapped(about), ...parts].filter(Boolean).join('\n\n');
}

function section(where, { title, about, command, columns, rows, ...measured }) {
  const each = rows.some((row) => !Array.isArray(row));
  const lines = rows.map((row) => (each ? [...row.cells, `${row.date}, \`${row.commit}\``] : row));
  const head = each ? [...columns, 'measured'] : columns;
  attributable(where, each ? rows.map((row) => ({ ...measured, ...row })) : [measured]);
  if (!(command?.length > 0)) faults.push(`${where}: no command`);
  if (lines.some((cells) => cells.length !== head.length)) faults.push(`${where}: uneven rows`);
  return [
    `## ${title}`,
    each ? `Machine: ${measured.machine}.` : facts(measured),
    (command ?? []).map((line) => `    ${line}`).join('\n'),
    wrapped(about),
    [tableRow(head), `|${'---|'.repeat(head.length)}`, ...lines.map(tableRow)].join('\n'),
  ]
    .filter(Boolean)
    .join('\n\n');
}

/** Text in lines of 120 columns. */
function wrapped(text = '') {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = [lines.at(-1), word].filter(Boolean).join(' ');
    if (line.length <= 120) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines.join('\n');
}

function facts({ date, commit, machine }) {
  return `Date: ${date}. Commit: \`${commit}\`. Machine: ${machine}.`;
}

function attributable(where, all) {
  for (const lacking of new Set(all.flatMap(missing))) faults.push(`${where}: no ${lacking}`);
}

function network(name, entry) {
  attributable(`zoo/${name}.json`, occasions(entry));
  return { name, kind: entry.about?.kind, ...entry };
}

function index() {
  const lines = listed('data').map((name) => `- [${read('data', name).title}](${name}.md)`);
  return `# Results

Tables of measurements, rendered from \`data/*.json\` and \`zoo/*.json\` by \`tools/results.mjs\`; the test
\`docs.results\` holds the pages to the data. Each table says when it was measured, with which commit, on which machine
and by which command. \`CIFAR\` stands for a folder with CIFAR-10 in its binary layout.

${lines.join('\n')}
- [The zoo: torchvision's networks](zoo.md)`;
}
