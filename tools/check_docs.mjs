#!/usr/bin/env node
// Every relative link in a document leads to a file; 1 if not.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const faults = documents().flatMap(deadLinks);
for (const fault of faults) console.error(`docs: ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;

function documents() {
  const below = (folder) =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? below(path) : path.endsWith('.md') ? [path] : [];
    });
  return [...readdirSync(root).filter((name) => name.endsWith('.md')), ...below('docs')];
}

function deadLinks(path) {
  const prose = readFileSync(join(root, path), 'utf8').replace(/^```[^]*?^```/gm, '');
  const links = [...prose.matchAll(/\]\(([^)#\s]+)[^)]*\)|src="([^"]+)"/g)];
  const targets = links.map(([, link, image]) => link ?? image).filter((to) => !/^[a-z]+:/.test(to));
  const dead = targets.filter((to) => !existsSync(join(root, dirname(path), to)));
  return dead.map((to) => `${path}: no ${to}`);
}
