#!/usr/bin/env python3
"""Encodes one text by Lathe and by the package tokenizers, one thread each, in turns.

  tokenizers_peer.py BENCH_TOKENIZERS TOKENIZERS TEXT [--rounds N] [--part BYTES]

BENCH_TOKENIZERS: the program; TOKENIZERS: a folder of NAME/tokenizer.json. Prints medians in MB/s (and the best round),
and whether both gave the same ids.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import time

os.environ['TOKENIZERS_PARALLELISM'] = 'false'
os.environ['RAYON_NUM_THREADS'] = '1'
import tokenizers  # noqa: E402


def parts_of(data, size):
    parts, at = [], 0
    while len(data) - at > size:
        end = data.find(b'\n', at + size)
        end = len(data) if end < 0 else end + 1
        parts.append(data[at:end].decode())
        at = end
    return parts + ([data[at:].decode()] if at < len(data) else [])


def peer_round(tokenizer, parts):
    ids = []
    begin = time.perf_counter()
    for part in parts:
        ids.append(tokenizer.encode(part, add_special_tokens=False))
    seconds = time.perf_counter() - begin
    checksum = 0
    for encoding in ids:
        for i in encoding.ids:
            checksum = (checksum * 31 + i) % 1000000007
    return seconds, sum(len(encoding) for encoding in ids), checksum


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('tokenizers', type=pathlib.Path)
    parser.add_argument('text', type=pathlib.Path)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--part', type=int, default=1 << 14)
    parser.add_argument('--only', nargs='*')
    options = parser.parse_args()
    data = options.text.read_bytes()
    parts = parts_of(data, options.part)
    print(f'{"":12} {"lathe MB/s":>18} {"tokenizers MB/s":>18} {"ratio":>6}  ids')
    for path in sorted(options.tokenizers.glob('*/tokenizer.json')):
        name = path.parent.name
        if options.only and name not in options.only:
            continue
        peer = tokenizers.Tokenizer.from_file(str(path))
        peer.no_truncation()
        peer.no_padding()
        lathe = subprocess.Popen([options.program, path, options.text, str(options.part)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        ours, theirs, same = [], [], True
        for _ in range(options.rounds):
            lathe.stdin.write('\n')
            lathe.stdin.flush()
            seconds, *mine = lathe.stdout.readline().split()
            ours.append(len(data) / 1e6 / float(seconds))
            seconds, *other = peer_round(peer, parts)
            theirs.append(len(data) / 1e6 / seconds)
            same = same and [int(x) for x in mine] == other
        lathe.stdin.close()
        lathe.wait()
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f'{name:12} {a:8.2f} ({max(ours):6.2f}) {b:9.2f} ({max(theirs):6.2f}) {a / b:6.2f}  '
              f'{"equal" if same else "DIFFERENT"}', flush=True)


if __name__ == '__main__':
    main()
