#!/usr/bin/env python3
"""Differential run of a directory of psql scripts on two servers.

PostgreSQL's own regression scripts (from a source package; they are never committed). Each
script is cut into statements, a marker is echoed after each, real psql runs it on both
servers, and the outputs between markers are compared. The score is the share of statements
whose output is the same, the order of its lines apart; EXPLAIN is shown and not counted.

  compare.py --src TREE/src/test/regress --ref PORT --sut PORT [--files a,b] [--out DIR]
"""
import argparse, os, re, subprocess, sys, pathlib

def split(text):
    """Text of a psql script -> list of statements (with the COPY data that follows)."""
    out, start, i, n, depth = [], 0, 0, len(text), 0
    while i < n:
        c = text[i]
        if c == "'":
            esc = i > 0 and text[i-1] in 'eE' and (i < 2 or not (text[i-2].isalnum() or text[i-2] == '_'))
            i += 1
            while i < n:
                if esc and text[i] == '\\': i += 2; continue
                if text[i] == "'":
                    if text[i+1:i+2] == "'": i += 2; continue
                    break
                i += 1
        elif c == '"':
            i = text.find('"', i+1)
            if i < 0: break
        elif c == '-' and text[i+1:i+2] == '-':
            j = text.find('\n', i); i = n if j < 0 else j
        elif c == '/' and text[i+1:i+2] == '*':
            d = 1; i += 2
            while i < n and d:
                if text.startswith('/*', i): d += 1; i += 2
                elif text.startswith('*/', i): d -= 1; i += 2
                else: i += 1
            continue
        elif c == '$' and not (i and (text[i-1].isalnum() or text[i-1] == '_')):
            m = re.match(r'\$([A-Za-z_]\w*)?\$', text[i:])
            if m:
                j = text.find(m.group(0), i + len(m.group(0)))
                if j < 0: break
                i = j + len(m.group(0)); continue
        elif c == '(' : depth += 1
        elif c == ')' : depth = max(0, depth-1)
        elif c == '\\' and text[i+1:i+2] == ';': i += 1
        elif c == '\\' :                      # a psql command: to the end of its line
            j = text.find('\n', i); i = n if j < 0 else j
            if re.match(r'\\(g|gset|gexec|gdesc|crosstabview|gx)\b', text[i - (i - max(0, text.rfind('\\', 0, i))):i]):
                out.append(text[start:i]); start = i; depth = 0
        elif c == ';' and depth == 0:
            stmt = text[start:i+1]
            j = text.find('\n', i); j = n if j < 0 else j
            bare = re.sub(r'--[^\n]*', '', stmt)
            if re.search(r'\bcopy\b[^;]*\bfrom\s+stdin\b', bare, re.I) and not re.search(r'\$\w*\$', stmt):
                e = re.search(r'^\\\.\s*$', text[j:], re.M)
                if e: j = j + e.end()
                stmt = text[start:j]; i = j
                out.append(stmt); start = i; continue
            out.append(stmt); start = i+1
        i += 1
    if text[start:].strip(): out.append(text[start:])
    return out

def psql(port, db, script, env, timeout):
    cmd = ['psql', '-X', '-q', '-h', '127.0.0.1', '-p', str(port), '-U', 'postgres', '-d', db, '-v', 'HIDE_TABLEAM=on', '-v', 'HIDE_TOAST_COMPRESSION=on', '-f', '-']
    p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    try: o, _ = p.communicate(script.encode('utf8', 'surrogateescape'), timeout=timeout); return o.decode('utf8', 'replace'), False
    except subprocess.TimeoutExpired:
        p.kill(); o, _ = p.communicate(); return o.decode('utf8', 'replace'), True

def cut(text):
    parts, cur = {}, []
    for line in text.split('\n'):
        m = re.match(r'^@@@(\d+)$', line)
        if m: parts[int(m.group(1))] = '\n'.join(cur); cur = []
        else: cur.append(re.sub(r'^psql:<stdin>:\d+: ', '', line))
    return parts

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--src', required=True); ap.add_argument('--ref', required=True); ap.add_argument('--sut', required=True)
    ap.add_argument('--files'); ap.add_argument('--out', default='/tmp/regress_diff'); ap.add_argument('--timeout', type=int, default=60)
    a = ap.parse_args()
    src = pathlib.Path(a.src); out = pathlib.Path(a.out); out.mkdir(parents=True, exist_ok=True)
    if a.files: names = a.files.split(',')
    else:
        names = [w for l in (src/'parallel_schedule').read_text().split('\n') if l.startswith('test:') for w in l[5:].split()]
    env = dict(os.environ, PGTZ='PST8PDT', PGDATESTYLE='Postgres, MDY', PGOPTIONS='-c intervalstyle=postgres_verbose', LC_MESSAGES='C',
               PG_ABS_SRCDIR=str(src), PG_ABS_BUILDDIR=str(out), PG_LIBDIR='/nowhere', PG_DLSUFFIX='.so')   # 15's scripts read these
    (out/'results').mkdir(exist_ok=True); os.chmod(out, 0o777); os.chmod(out/'results', 0o777)   # the servers write here
    for port in (a.ref, a.sut):
        for s in ('drop database if exists regression', 'create database regression'):
            o, _ = psql(port, 'postgres', s, env, 60)
            if 'ERROR' in o: print(port, o.strip())
    total = same = letter = plan_n = plan_same = 0; rows = []
    for name in names:
        f = src/'sql'/f'{name}.sql'
        if not f.exists(): f = src/'input'/f'{name}.source'
        if not f.exists(): continue
        text = f.read_bytes().decode('utf8', 'surrogateescape')
        text = text.replace('@abs_srcdir@', str(src)).replace('@abs_builddir@', str(out)).replace('@libdir@/', '').replace('@DLSUFFIX@', '.so').replace('@testtablespace@', str(out/'ts'))
        stmts = split(text)
        script = ''.join(s + f'\n\\echo @@@{k}\n' for k, s in enumerate(stmts))
        ra, ta = psql(a.ref, 'regression', script, env, a.timeout)
        rb, tb = psql(a.sut, 'regression', script, env, a.timeout)
        pa, pb = cut(ra), cut(rb)
        plain = lambda t: re.sub(r'--[^\n]*', '', t).strip().lower()
        plans = {k for k, s in enumerate(stmts) if plain(s).startswith('explain')}   # plans differ by design: shown, not counted
        ok = {k for k in range(len(stmts)) if k in pa and pa.get(k) == pb.get(k)}
        order = {k for k in range(len(stmts)) if k in pa and k in pb and k not in ok and sorted(pa[k].split('\n')) == sorted(pb[k].split('\n'))}
        bad = [k for k in range(len(stmts)) if k not in ok]
        n = len(stmts) - len(plans); good = len((ok | order) - plans)
        total += n; same += good; letter += len(ok - plans); plan_n += len(plans); plan_same += len(plans & ok)
        rows.append((name, good, n, 'ref timed out' if ta else 'timed out' if tb else ''))
        with open(out/f'{name}.diff', 'w', errors='replace') as w:
            for k in bad: w.write(f'--- {name} {k}\n{stmts[k].strip()}\n<<< ref\n{pa.get(k,"(none)").strip()}\n>>> sut\n{pb.get(k,"(none)").strip()}\n\n')
        print(f'{name:28s} {good:5d}/{n:5d} {100.0*good/max(1,n):5.1f} % {rows[-1][3]}', flush=True)
    print(f'{letter} the same to the letter; {plan_same}/{plan_n} plans (EXPLAIN) the same, not counted')
    print(f'{same}/{total} statements the same, order of lines apart: {100.0*same/max(1,total):.1f} %')

main()
