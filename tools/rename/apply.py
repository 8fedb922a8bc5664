#!/usr/bin/env python3
"""apply.py [--report] [--no-format] [--check]: rewrites the words of the tree in the current folder.

Rules stand beside this script:
  files.txt      old path suffix -> new path suffix           (git mv; includes and mentions follow)
  ids.txt        [regex of paths] then `old -> new`           (identifiers in code; code-like ones in comments, too)
  prose.txt      regex TAB replacement [TAB flags [TAB regex of paths]] (flags: c comments, s strings, t texts; all by default)
  sentences*.txt blocks: `- old` / `+ new`                    (exact, whatever the line wraps; *_msg: strings and texts, others: comments)
  raw.txt        blocks: `@ regex of paths` / `- old` / `+ new` (code; white space does not count, \\n is a new line)
Idempotent: what is not there is skipped. --report changes nothing and lists what is left.
"""
import os, re, subprocess, sys, textwrap, collections

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 100
CPP = re.compile(r'\.(cc|h|cpp|hpp)$')
TEXT = re.compile(r'(\.(md|cmake|sh|mjs|js|py|txt|json|yml|yaml|clang-tidy|in)$|CMakeLists\.txt$)')
TEXT_PROSE = re.compile(r'^(tests/.*error_?texts?\.txt|docs/guide/training\.md|tests/golden/errors\.txt|configs/.*schema.*\.json|report/html/web/.*|tests/.*\.expected)$')
SKIP = re.compile(r'(^|/)(CHANGELOG\.md|docs/adr/|docs/internals/adr/|docs/results/|docs/zoo/|package-lock\.json|.*corpus.*)')


def run(*a, **k):
    return subprocess.run(a, capture_output=True, text=True, **k)


def tracked():
    return [f for f in run('git', 'ls-files').stdout.splitlines() if os.path.isfile(f)]


def read(f):
    try:
        return open(f, encoding='utf-8').read()
    except UnicodeDecodeError:
        return None


def norm(s):
    return re.sub(r'\s+', ' ', s).strip()


# ---- rules ------------------------------------------------------------------------------------
def lines_of(name):
    p = os.path.join(HERE, name)
    if not os.path.exists(p): return []
    return [l.rstrip('\n') for l in open(p, encoding='utf-8')]


def load_files():
    out = []
    for l in lines_of('files.txt'):
        l = l.split('#')[0].strip()
        if l:
            a, b = [x.strip() for x in l.split('->')]
            out.append((a, b))
    return out


def load_ids():
    """[(compiled scope, {old: new}, pairs of qualified regex)]"""
    out = []
    for l in lines_of('ids.txt'):
        if l.startswith('[') and l.endswith(']'):
            out.append((re.compile(l[1:-1]), {}))
            continue
        if l.startswith('~'):
            a, b = l.rsplit(' -> ', 1)
            out[-1][1][a.strip()] = b.strip()
            continue
        l = l.split('#')[0].strip()
        if not l: continue
        for part in l.split(';'):
            a, b = [x.strip() for x in part.split('->')]
            out[-1][1][a] = b
    return out


def load_prose():
    out = []
    for l in lines_of('prose.txt'):
        if not l.strip() or l.startswith('#'): continue
        f = l.split('\t')
        out.append((re.compile(f[0]), f[1] if len(f) > 1 else '', f[2] if len(f) > 2 and f[2] else 'cst',
                    re.compile(f[3]) if len(f) > 3 else None))
    return out


def load_raw():
    out, scope, old = [], None, None
    for l in lines_of('raw.txt'):
        if l.startswith('@ '): scope = re.compile(l[2:])
        elif l.startswith('- '): old = l[2:].replace('\\n', '\n')
        elif l.startswith('+'):
            words = [re.escape(w) for w in old.split()]
            out.append((scope, re.compile(r'\s+'.join(words)), l[2:].replace('\\n', '\n')))
    return out


def load_sentences():
    import glob
    out, old = [], None
    for path in sorted(glob.glob(os.path.join(HERE, 'sentences*.txt'))):
        for n, l in enumerate(open(path, encoding='utf-8').read().split('\n') + ['']):
            if l.startswith('- '):
                old, new = l[2:], None
            elif l.startswith('+'):
                if old is None: sys.exit(f'{path}:{n+1}: + without -')
                a, b = norm(old), norm(l[1:])
                out.append((a, b, 'st' if 'msg' in os.path.basename(path) else 'c'))
                old = None
            elif l.strip() and not l.startswith('#'):
                sys.exit(f'{path}:{n+1}: neither - nor +: {l[:80]}')
    # longest first, so that a sentence goes before its part
    seen, res = {}, []
    for a, b, f in out:
        if (a, f) in seen:
            if seen[a, f] != b: print('two rules for:', a)
            continue
        seen[a, f] = b
        res.append((a, b, f))
    res.sort(key=lambda x: -len(x[0]))
    return res


FILES, IDS, PROSE, SENT, RAW = load_files(), load_ids(), load_prose(), load_sentences(), load_raw()
used = collections.Counter()
# an index from a word pair to sentences, so that few are tried per paragraph
FIRST = collections.defaultdict(list)
for a, b, f in SENT:
    words = re.findall(r'\w+', a)
    FIRST[max(words, key=len) if words else ''].append((a, b, f))


PATH = ''


def reword(text, flag):
    """One paragraph of prose, its white space already single."""
    words = set(re.findall(r'\w+', text))
    cands = [r for w in words for r in FIRST.get(w, ())] + FIRST.get('', [])
    cands.sort(key=lambda x: -len(x[0]))
    for a, b, f in cands:
        if flag not in f: continue
        if a in b:  # the new text contains the old one: only where that is all of the paragraph
            if text == a: text, used[a] = b, 1
            continue
        i = text.find(a)
        while i >= 0:
            j = i + len(a)
            ok = (i == 0 or not (text[i - 1].isalnum() and a[0].isalnum())) and \
                 (j == len(text) or not (text[j].isalnum() and a[-1].isalnum()))
            if ok:
                text = text[:i] + b + text[j:]
                used[a] += 1
                i = text.find(a, i + len(b))
            else:
                i = text.find(a, i + 1)
    for r, b, f, scope in PROSE:
        if flag in f and (scope is None or scope.search(PATH)): text = r.sub(b, text)
    return text


# ---- C++ --------------------------------------------------------------------------------------
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|(?:u8|L|u|U)?R"([^()\\ ]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                   r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)


def tokens(text):
    at = 0
    for m in TOKEN.finditer(text):
        if m.start() > at: yield 'code', text[at:m.start()]
        t = m.group(0)
        kind = 'line' if t.startswith('//') else 'block' if t.startswith('/*') else \
               'raw' if re.match(r'(u8|L|u|U)?R"', t) else 'str' if t[0] == '"' else 'char'
        yield kind, t
        at = m.end()
    if at < len(text): yield 'code', text[at:]


def reword_strings(text):
    toks = [list(t) for t in tokens(text)]
    i = 0
    while i < len(toks):
        if toks[i][0] != 'str':
            i += 1
            continue
        j = i
        while j + 2 < len(toks) and toks[j + 1][0] == 'code' and not toks[j + 1][1].strip() and toks[j + 2][0] == 'str':
            j += 2
        before = toks[i - 1][1] if i else ''
        if not re.search(r'#\s*include\s*$', before):
            whole = ''.join(t[1][1:-1] for t in toks[i:j + 1] if t[0] == 'str')
            new = reword(whole, 's')
            if new != whole:
                toks[i][1] = '"' + new + '"'
                for k in range(i + 1, j + 1): toks[k] = ['code', '']
        i = j + 1
    return ''.join(t[1] for t in toks)


MARK = re.compile(r'^(\s*)(///<|//!<|///|//)(.*)$')
VERBATIM = re.compile(r'^\s*(NOLINT|clang-format|namespace\b|IWYU|-{3,}|={3,})')


class Par:
    def __init__(self, first, hang, text, raw, fill=True):
        self.first, self.hang, self.text, self.raw, self.fill = first, hang, text, raw, fill


def paragraphs(lines):
    """`lines`: contents behind the marker. Plain text joins, the rest stands line by line."""
    out, cur = [], None
    for raw in lines:
        body = raw[1:] if raw.startswith(' ') else raw
        ind = len(body) - len(body.lstrip(' '))
        s = body.strip()
        if not s or VERBATIM.match(body):
            out.append(Par('', '', s, [raw], False))
            cur = None
            continue
        item = re.match(r'^(\s*)([-*•]|\d+\.)\s+', body)
        if item:
            cur = Par(body[:item.end()], ' ' * item.end(), body[item.end():].strip(), [raw])
            out.append(cur)
            continue
        if s.startswith('@') and ind == 0:
            cur = Par('', None, s, [raw])
            out.append(cur)
            continue
        if cur is not None and cur.hang is None:  # second line of an @ paragraph tells its indent
            if ind == 0 or ind >= 4:
                cur.hang = ' ' * ind
                cur.text += ' ' + s
                cur.raw.append(raw)
                continue
        if cur is not None and cur.hang is not None and len(cur.hang) == ind:
            cur.text += ' ' + s
            cur.raw.append(raw)
            continue
        if ind == 0:
            cur = Par('', '', s, [raw])
            out.append(cur)
            continue
        out.append(Par(' ' * ind, ' ' * ind, s, [raw], False))  # preformatted
        cur = None
    return out


def refill(par, text, prefix):
    if not par.fill: return [prefix + ' ' + par.first + text] if text else [prefix]
    width = WIDTH - len(prefix) - 1
    w = textwrap.wrap(text, width, initial_indent=par.first, subsequent_indent=par.hang or '',
                      break_long_words=False, break_on_hyphens=False)
    return [prefix + ' ' + l for l in w]


def sentence(s):
    if re.match(r'[a-z]+[ ,:;]', s): s = s[0].upper() + s[1:]
    return s if s[-1] in '.:;?!' else s + '.'


def reword_comments(text):
    # which lines hold a comment, and where it begins (raw strings and strings are not comments)
    starts, off = {}, 0
    for kind, t in tokens(text):
        if kind == 'line': starts[off] = t
        off += len(t)
    lines, pos, info = text.split('\n'), 0, []
    for l in lines:
        col = next((s - pos for s in range(pos, pos + len(l) + 1) if s in starts), None) if '//' in l else None
        info.append(col)
        pos += len(l) + 1
    out, i = [], 0
    while i < len(lines):
        col = info[i]
        if col is None:
            out.append(lines[i])
            i += 1
            continue
        head = lines[i][:col]
        mark = re.match(r'///<|///|//', lines[i][col:]).group(0)
        j = i + 1
        while j < len(lines) and info[j] is not None and not lines[j][:info[j]].strip() and \
                info[j] == col and re.match(r'///<|///|//', lines[j][info[j]:]).group(0) == mark:
            j += 1
        body = [l[col + len(mark):].rstrip() for l in lines[i:j]]
        if head.strip():  # behind code
            old = norm(' '.join(body))
            new = reword(old, 'c')
            if new == old:
                out += lines[i:j]
            elif len(head) + len(mark) + 1 + len(new) <= WIDTH:
                out.append(f'{head}{mark} {new}')
            else:
                above = '///' if mark == '///<' else mark
                new = sentence(new)
                indent = re.match(r'\s*', head).group(0)
                out += [indent + l for l in textwrap.wrap(new, WIDTH - len(indent), initial_indent=above + ' ',
                                                          subsequent_indent=above + ' ', break_on_hyphens=False)]
                out.append(head.rstrip())
        else:
            for p in paragraphs(body):
                new = reword(p.text, 'c') if p.text else p.text
                if new == p.text:
                    out += [head + mark + r for r in p.raw]
                elif new:
                    out += refill(p, new, head + mark)
        i = j
    return '\n'.join(out)


IDENT = re.compile(r'[A-Za-z_]\w*')
RULE_LINE = re.compile(r'\b(rule|schema|row|op|known|found|described)_?(->|\.)$')  # a line of notation is another word
CODELIKE = re.compile(r'_|[a-z][A-Z]|[A-Z]{2}')


def rename_ids(path, text):
    table, quals = {}, []
    for scope, t in IDS:
        if scope.search(path):
            for a, b in t.items():
                if a.startswith('~'): quals.append((re.compile(a[1:].strip()), b))
                else: table.setdefault(a, b)
    if not table and not quals: return text
    out = []
    prev = ''
    for kind, t in tokens(text):
        if kind == 'code':
            for r, b in quals: t = r.sub(b, t)
            t = IDENT.sub(lambda m: m.group(0) if m.group(0) == 'line' and RULE_LINE.search(t, 0, m.start())
                          else table.get(m.group(0), m.group(0)), t)
        elif kind in ('line', 'block'):
            t = IDENT.sub(lambda m: table.get(m.group(0), m.group(0)) if CODELIKE.search(m.group(0)) else m.group(0), t)
            t = re.sub(r'`([^`]*)`', lambda m: '`' + IDENT.sub(lambda x: table.get(x.group(0), x.group(0)), m.group(1)) + '`', t)
        out.append(t)
    return ''.join(out)


# ---- the steps --------------------------------------------------------------------------------
def move_files():
    moved = {}
    for f in tracked():
        for a, b in FILES:
            if f == a or f.endswith('/' + a):
                g = f[:len(f) - len(a)] + b
                if os.path.exists(g):
                    print('cannot move, there is one already:', f, '->', g)
                    break
                os.makedirs(os.path.dirname(g) or '.', exist_ok=True)
                subprocess.run(['git', 'mv', f, g], check=True)
                moved[f] = g
                break
    return moved


MENTION = [(re.compile(r'(?<![\w-])' + re.escape(a) + r'(?![\w])'), b) for a, b in FILES]


def mentions(text):
    for r, b in MENTION: text = r.sub(b, text)
    return text


def sort_includes(text):
    return text  # clang-format does


def main():
    args = sys.argv[1:]
    if '--report' in args: return report()
    global PATH
    moved = move_files()
    changed = []
    for f in tracked():
        if os.path.islink(f) or '/build/' in f: continue
        cpp, txt = CPP.search(f), TEXT.search(f)
        if not cpp and not txt: continue
        old = read(f)
        if old is None: continue
        PATH = f
        new = old
        if not SKIP.search(f): new = mentions(new)
        for scope, r, b in RAW:
            if scope.search(f): new = r.sub(lambda m: b, new)
        if cpp:
            new = reword_strings(new)
            new = reword_comments(new)
            new = rename_ids(f, new)
        elif TEXT_PROSE.match(f):
            new = '\n'.join(reword(l, 't') for l in new.split('\n'))
        if new != old:
            open(f, 'w', encoding='utf-8').write(new)
            changed.append(f)
    cpps = [f for f in changed if CPP.search(f)]
    if '--no-format' not in args:
        for i in range(0, len(cpps), 40):
            subprocess.run(['clang-format-14', '-i', '--style=file'] + cpps[i:i + 40], check=True)
    print(f'{len(moved)} files moved, {len(changed)} changed')
    missing = [a for a, b, f in SENT if not used[a]]
    print(f'{len(missing)} of {len(SENT)} sentences were not found')
    open('build/rename_missing.txt', 'w').write('\n'.join(missing) + '\n')
    for f in cpps:
        for n, l in enumerate(read(f).split('\n'), 1):
            if re.match(r'^\s+///<', l): print(f'{f}:{n}: a trailing comment was wrapped: {l.strip()}')


LEFT = [r'(?i:\b(?:stay|kept|keep|left|leav|held)\w*\s+(?:\w+\s+){0,2}whole\b)', r'\bdead\b', r'(?i:\bflood\w*)', r'(?i:\bbefall\w*)', r'(?i:\bletters?\b)', r'(?i:\bcarriers?\b)',
        r'(?i:\bworth\b)', r'\bturns\b', r'(?i:\bspell\w*|\bspelt\b)', r'\bkin\b', r'(?i:\bjudg\w*)', r'(?i:\bworkshop\b)', r'\blen[dt]s?\b', r'(?i:\bafresh\b|\banew\b)', r'(?i:\boracle\w*)',
        r'(?i:\bcompromises?\b)', r'(?i:\bmade[ _]up\b)', r'\bPlace\b', r'\b[A-Z]\w*Order\b', r'(?i:\bfidelity\b)', r'(?i:\bpieces?\b)', r'\bExit\b(?!::|:? )', r'(?i:\bhomes?\b(?!"))', r'\bMeasured in turn\b|\bin turn\b']


def report():
    total = collections.Counter()
    rx = [re.compile(p) for p in LEFT]
    for f in tracked():
        if not (CPP.search(f) or TEXT.search(f)) or SKIP.search(f): continue
        s = read(f)
        if s is None: continue
        for n, l in enumerate(s.split('\n'), 1):
            for p, r in zip(LEFT, rx):
                if r.search(l):
                    total[p] += 1
                    print(f'{f}:{n}: [{r.search(l).group(0)}] {l.strip()[:150]}')
    for p, c in total.most_common(): print(f'{c:6}  {p}')


if __name__ == "__main__": main()
