"""The loop of a peer that waits for commands: see workers.Worker."""
import json
import os
import sys
import time

import torch


def serve(threads, opened):
    """Answers each line of standard input with a line of JSON. "run N" runs the open case N times and answers
    {"seconds": [...]}. `opened(words)` opens the case of any other line: it returns a function that runs it, and
    the answer."""
    torch.set_num_threads(threads)
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    run = None
    print(json.dumps({'version': torch.__version__}), file=answers, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == 'run':
            seconds = []
            for _ in range(int(words[1])):
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            answer = {'seconds': seconds}
        else:
            run, answer = opened(words)
        print(json.dumps(answer), file=answers, flush=True)


def wrapper(kind):
    """Returns torch.compile for "compile", and otherwise a function that returns its argument."""
    return torch.compile if kind == 'compile' else (lambda function: function)
