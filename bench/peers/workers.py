"""Processes that measure when told and wait on a pipe otherwise, so that rounds of several programs can take turns."""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import platform
import statistics
import subprocess


class Worker:
    """A program that answers each line of its input with a line of JSON; the first answer says that it is ready."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})})
        self.ready = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f'{self.name} ended with status {self.process.wait()}')
        return json.loads(line)

    def ask(self, command):
        self.process.stdin.write(command + '\n')
        self.process.stdin.flush()
        return self.answer()

    def threads(self):
        return [int(task) for task in os.listdir(f'/proc/{self.process.pid}/task')]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def undisturbed(workers, lock, realtime):
    """Holds the lock file, if there is one, and gives the workers' threads real-time priority, if it is not 0."""
    with open(lock or os.devnull, 'a') as file:
        if lock:
            fcntl.flock(file, fcntl.LOCK_EX)

        def set_policy(policy, priority):
            for worker in workers:
                for thread in worker.threads():
                    with contextlib.suppress(ProcessLookupError):
                        os.sched_setscheduler(thread, policy, os.sched_param(priority))
        if realtime:
            set_policy(os.SCHED_FIFO, realtime)
        try:
            yield
        finally:
            if realtime:
                set_policy(os.SCHED_OTHER, 0)


def measure_in_turns(workers, options, first_runs=3, before_round=None):
    """Median seconds of each worker's open case. `before_round` is called before each round."""
    counts, seconds = {}, {w.name: [] for w in workers}
    with undisturbed(workers, options.lock, options.realtime):
        for worker in workers:
            first = worker.ask(f'run {first_runs}')['seconds']
            counts[worker.name] = max(1, min(200, int(options.budget / options.rounds / min(first))))
        for _ in range(options.rounds):
            if before_round:
                before_round()
            for worker in workers:
                seconds[worker.name] += worker.ask(f'run {counts[worker.name]}')['seconds']
    return {name: median(s) for name, s in seconds.items()}


def is_intel():
    return 'GenuineIntel' in pathlib.Path('/proc/cpuinfo').read_text()


def peer_environment(folder, threads, stock=False):
    """Two threads mean two: no binding, no oversubscription. MKL takes its AVX-512 code on every vendor's CPU, unless
    `stock` asks for PyTorch just as it is installed."""
    environment = {'OMP_NUM_THREADS': str(threads), 'OMP_PROC_BIND': 'false', 'MKL_DYNAMIC': 'false',
                   'TF_CPP_MIN_LOG_LEVEL': '3', 'PYTHONWARNINGS': 'ignore', 'JAX_PLATFORMS': 'cpu',
                   'CUDA_VISIBLE_DEVICES': '',
                   'TORCHINDUCTOR_CACHE_DIR': str(pathlib.Path(folder).resolve() / 'inductor')}
    if not stock and not is_intel():
        environment['LD_PRELOAD'] = str(pathlib.Path(folder).resolve() / 'lib' / 'libmkl_any_cpu.so')
    return environment


def add_common_options(parser):
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument('--build', type=pathlib.Path, default=root / 'build', help="Lathe's build folder")
    parser.add_argument('--peers', type=pathlib.Path, default=root / '.bench-peers', help='what setup.sh made')
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--lock', help='a file to lock for each round: measurements on one machine take turns')
    parser.add_argument('--realtime', type=int, default=0, metavar='PRIORITY',
                        help='measure at this real-time priority (needs the right to), over what else runs')


def case_parser(description, cases):
    """A parser of the common options, the time of a case and the cases to run, by default `cases`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_common_options(parser)
    parser.add_argument('--budget', type=float, default=4, help='seconds of runs of each program in one case')
    parser.add_argument('cases', nargs='*', default=cases)
    return parser


def machine():
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.split(':')[1].strip()
    return platform.machine()


median = statistics.median
