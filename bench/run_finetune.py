#!/usr/bin/env python3
"""Steps of fine-tuning by `lathe finetune` and by PyTorch with transformers and PEFT, in turns: GPT-2 124M's shape, random weights, all of
them trained or a LoRA adapter of rank 16 on all linear layers. AdamW, gradients clipped, rows of equally many tokens, in f32 or in mixed
precision.

Usage: bench/run_finetune.py [--build FOLDER] [--peers FOLDER] [--threads N] [--rounds N] [--steps N] [--batch N] [--context N]
                             [--precision f32|bf16]
--peers is what bench/peers/setup.sh made, with `pip install transformers peft` in it; --python names another interpreter that has torch,
transformers and peft. On processors that are not Intel's PyTorch runs twice: as it is installed, and with the AVX-512 code that MKL keeps
from them (workers.py). Prints medians over the steps of all rounds, the first of each round left out, and the first losses, which agree.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here / 'peers'))
import workers  # noqa: E402

VOCAB, CONTEXT, RATE = 50257, 1024, 1e-4

MAKE_MODEL = '''
import sys, numpy as np, torch, transformers
folder, rows, length, ids = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.manual_seed(1)
config = transformers.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
transformers.GPT2LMHeadModel(config).save_pretrained(folder)
made = np.random.default_rng(1).integers(0, config.eos_token_id, (rows, length))
made[:, -1] = config.eos_token_id
np.save(ids, made)
'''


def tokenizer():
    """A word for each token: texts become the very ids."""
    return {'version': '1.0', 'truncation': None, 'padding': None, 'added_tokens': [], 'normalizer': None,
            'pre_tokenizer': {'type': 'WhitespaceSplit'}, 'post_processor': None,
            'decoder': {'type': 'WordPiece', 'prefix': '##', 'cleanup': False},
            'model': {'type': 'WordPiece', 'unk_token': 't0', 'continuing_subword_prefix': '##', 'max_input_chars_per_word': 100,
                      'vocab': {f't{i}': i for i in range(VOCAB)}}}


def prepare(options):
    """The model, and the rows of one batch as ids in a .npy and as texts, which end in the end token that `lathe finetune` adds: each step
    of both programs sees the same rows."""
    folder, rows = options.folder, options.batch
    folder.mkdir(parents=True, exist_ok=True)
    ids = folder / 'ids.npy'
    subprocess.run([options.python, '-c', MAKE_MODEL, str(folder / 'model'), str(rows), str(options.context), str(ids)], check=True)
    (folder / 'model' / 'tokenizer.json').write_text(json.dumps(tokenizer()))
    dump = 'import sys, numpy, json; print(json.dumps(numpy.load(sys.argv[1]).tolist()))'
    lists = json.loads(subprocess.run([options.python, '-c', dump, str(ids)], check=True, capture_output=True).stdout)
    with open(folder / 'data.jsonl', 'w') as file:
        for row in lists:
            file.write(json.dumps({'text': ' '.join(f't{i}' for i in row[:-1])}) + '\n')


def lathe(options, rank):
    output = options.folder / f'lathe-{rank}'
    command = [options.build / 'tools/lathe', 'finetune', options.folder / 'model', '--data', options.folder / 'data.jsonl', '--fresh',
               '-o', output, '--steps', options.steps, '--batch', options.batch, '--context', options.context, '--lr', RATE, '--schedule',
               'constant', '--warmup', '1', '--threads', options.threads, '--save-every', 1000000, '--clip', 1]
    command += ['--lora', f'r={rank}'] if rank else []
    command += ['--precision', options.precision]
    subprocess.run([*shlex.split(options.prefix), *map(str, command)], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (output / 'training/metrics.jsonl').read_text().splitlines()]
    return [line['seconds'] for line in lines if 'loss' in line], [line['loss'] for line in lines if 'loss' in line]


def programs():
    """Names of the peers, and whether they run just as they are installed."""
    if workers.is_intel():
        return {'PyTorch, PEFT': True}
    return {'PyTorch, PEFT': True, 'PyTorch, PEFT, AVX-512 in MKL': False}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    workers.add_common_options(parser)
    parser.add_argument('--python', help='an interpreter with torch, transformers and peft')
    parser.add_argument('--folder', type=pathlib.Path, default=here.parent / 'build/bench-finetune', help='where model and data are made')
    parser.add_argument('--precision', choices=['f32', 'bf16'], default='f32')
    parser.add_argument('--prefix', default='', help='what commands are started by, such as "chrt -f 50"')
    parser.add_argument('--steps', type=int, default=5, help='of a round')
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--context', type=int, default=256)
    options = parser.parse_args()
    options.python = options.python or str(options.peers / 'bin/python')
    prepare(options)
    tokens = options.batch * options.context
    print('| trained | program | ms a step | tokens/s | time / Lathe | first loss |')
    print('|---|---|---|---|---|---|')
    for rank, name in ((0, 'all weights'), (16, 'LoRA r=16')):
        command = [*shlex.split(options.prefix), options.python, str(here / 'peers/peft_worker.py'), str(options.folder / 'model'),
                   str(options.folder / 'ids.npy'), str(options.batch), str(rank), str(RATE), str(options.threads),
                   options.precision]
        peers = {program: workers.Worker('peft', command, workers.peer_environment(options.peers, options.threads, stock))
                 for program, stock in programs().items()}
        times = {'Lathe': [], **{program: [] for program in peers}}
        losses = {'Lathe': lathe(options, rank)[1][0]}  # compiles, warms up
        losses |= {program: peer.ask('run 1')['losses'][0] for program, peer in peers.items()}
        for _ in range(options.rounds):
            times['Lathe'] += lathe(options, rank)[0][1:]
            for program, peer in peers.items():
                times[program] += peer.ask(f'run {options.steps}')['seconds'][1:]
        for peer in peers.values():
            peer.close()
        own = statistics.median(times['Lathe'])
        for program, seconds in times.items():
            median = statistics.median(seconds)
            print(f'| {name} | {program} | {median * 1e3:.0f} | {tokens / median:.0f} | {median / own:.2f} | {losses[program]:.4f} |', flush=True)


if __name__ == '__main__':
    main()
