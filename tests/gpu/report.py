#!/usr/bin/env python3
"""Joins what tests/gpu/run.sh left in a folder into results.json and table.md: report.py FOLDER"""
import json
import pathlib
import sys
import time


def lines_of(folder):
    for file in sorted(folder.glob('*.jsonl')):
        for line in file.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                print(f'{file.name}: not JSON: {line[:80]}')


def text_of(path):
    return path.read_text().strip() if path.exists() else ''


def rate(entry, seconds):
    if entry.get('tokens'):
        return f"{entry['tokens'] / seconds:.0f} tokens/s"
    if entry.get('flops'):
        return f"{entry['flops'] / seconds * 1e-12:.1f} TFLOP/s"
    return ''


def main():
    folder = pathlib.Path(sys.argv[1])
    by_case = {}
    for entry in lines_of(folder):
        by_case.setdefault(entry['case'], {})[entry['program']] = entry
    checks = dict(line.split(' ', 1) for line in text_of(folder / 'checks.log').splitlines())
    results = {'date': time.strftime('%Y-%m-%d'), 'machine': text_of(folder / 'machine.log'), 'checks': checks,
               'times': by_case}
    (folder / 'results.json').write_text(json.dumps(results, indent=1) + '\n')
    table = [f"{results['machine']}, {results['date']}", '', '| check | result |', '|---|---|']
    table += [f'| {name} | {word} |' for name, word in checks.items()]
    table += ['', '| case | Lathe ms | in kernels ms | Lathe | best peer ms | peer / Lathe | note |',
              '|---|---|---|---|---|---|---|']
    for case, entries in by_case.items():
        own = entries.pop('Lathe', {})
        peers = {name: entry['seconds'] for name, entry in entries.items() if 'seconds' in entry}
        best = min(peers, key=peers.get, default=None)
        seconds = own.get('seconds')
        notes = [e['error'][:80] for e in (own, *entries.values()) if 'error' in e]
        table.append(' | '.join([
            f'| {case}', f'{1e3 * seconds:.3f}' if seconds else '', f"{1e3 * own['in_kernels']:.3f}" if seconds else '',
            rate(own, seconds) if seconds else '', f'{1e3 * peers[best]:.3f} ({best})' if best else '',
            f'{peers[best] / seconds:.2f}' if best and seconds else '', '; '.join(notes) + ' |']))
    (folder / 'table.md').write_text('\n'.join(table) + '\n')
    print('\n'.join(table))


if __name__ == '__main__':
    main()
