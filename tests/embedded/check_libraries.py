#!/usr/bin/env python3
"""Compares C libraries of `lathe compile` with `lathe run`, bit for bit, for any graphs.

  tests/embedded/check_libraries.py build/tools/lathe step.lathe --max B=3,T=16 --integers 31
  tests/embedded/check_libraries.py build/tools/lathe tests/import/data/*/model.onnx --max 5

Each graph (IR text, ONNX or .pt2 file) becomes a library. A strict C99 program calls it several times in a row, with the
largest sizes, with sizes of 1 and with sizes between, without workers and with 1, 2 and 7. Outputs and updated states
must have the bits of `lathe run`; sizes that `lathe run` refuses must be an error of the library too. The first run also
makes wrong calls, each of which must be an error. Inputs and states have random values; with states of late-bound sizes,
or indices that must be distinct, some graphs need values that this script does not draw.
"""

import argparse
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

BYTES = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "i8": 1, "u8": 1, "bool": 1, "c64": 8, "c128": 16}
FLAGS = ["-std=c99", "-D_DEFAULT_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]

START = r"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib.h"
#include "lathe_pool.h"

static int bad = 0;
static void *get(FILE *file, size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, bytes + 1) != 0 || (file != NULL && fread(memory, 1, bytes, file) != bytes)) exit(90);
  if (file == NULL) memset(memory, 0xff, bytes);
  return memory;
}
static void put(FILE *file, const void *memory, size_t bytes) {
  if (fwrite(memory, 1, bytes, file) != bytes) exit(91);
}
static void refused(int32_t error, const char *what) {
  if (error > 0 && strlen(lib_message(error)) > 8) return;
  printf("%s is accepted\n", what);
  bad = 1;
}
int main(int argc, char **argv) {
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  const int threads = atoi(argv[3]), faults = argc > 4;
  if (in == NULL || out == NULL) return 92;
  lathe_pool pool;
  if (threads > 0 && lathe_pool_start(&pool, threads) != 0) return 93;
  lib library = {0};
"""


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def must(*command):
    done = run(*command)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def shape_of(tensor, sizes):
    return [d if isinstance(d, int) else eval(d, {}, dict(sizes)) for d in tensor["shape"]]


def bytes_of(tensor, sizes):
    count = BYTES[tensor["dtype"]]
    for size in shape_of(tensor, sizes):
        count *= size
    return count


def values_of(tensor, sizes, draw, integers):
    """Returns the bytes of random values."""
    dtype, count = tensor["dtype"], bytes_of(tensor, sizes) // BYTES[tensor["dtype"]]
    if dtype in ("i64", "i32", "i8", "u8", "bool"):
        form = {"i64": "q", "i32": "i", "i8": "b", "u8": "B", "bool": "B"}[dtype]
        below = 2 if dtype == "bool" else integers
        return struct.pack(f"<{count}{form}", *[draw.randrange(below) for _ in range(count)])
    numbers = [draw.gauss(0, 0.5) for _ in range(count * (2 if dtype in ("c64", "c128") else 1))]
    if dtype == "bf16":
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    form = {"f64": "d", "c128": "d", "f32": "f", "c64": "f", "f16": "e"}[dtype]
    return struct.pack(f"<{len(numbers)}{form}", *numbers)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype.upper(), "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    return {name: data[start + one["data_offsets"][0]:start + one["data_offsets"][1]]
            for name, one in json.loads(data[8:start]).items() if name != "__metadata__"}


def wrong_calls(about, function, sizes):
    """Returns C statements that make each mistake once, as (statement, what)."""
    name, calls = function["name"], []
    for dim in about["dims"]:
        for value in ("-1", str(dim["most"] + 1), "INT64_MAX", "INT64_MIN"):
            calls.append((f"wrong.dims.{dim['member']} = {value};", f"{dim['member']} = {value}"))
    tensors = [(part, t) for part in ("inputs", "outputs") for t in function[part] if bytes_of(t, sizes) > 0]
    for part, t in tensors:
        place = f"wrong.{part}.{t['member']}"
        calls.append((f"{place} = NULL;", f"null {t['member']}"))
        if BYTES[t["dtype"]] > 1:
            calls.append((f"{place} = (void *)((size_t){place} + 1);", f"misaligned {t['member']}"))
        if part == "outputs":
            calls.append((f"{place} = call.workspace;", f"{t['member']} in the workspace"))
            for other, u in tensors:
                if u is not t:
                    calls.append((f"{place} = (void *)(size_t)call.{other}.{u['member']};",
                                  f"{t['member']} in the memory of {u['member']}"))
    calls += [("wrong.workspace_bytes = 0;", "no workspace"), ("wrong.workspace = NULL;", "a null workspace"),
              ("wrong.workers = &none;", "workers without a function")]
    if about["states"]:
        calls.append(("wrong.states = NULL;", "null states"))
    random.Random(1).shuffle(calls)
    return [f'      wrong = call;\n      {code}\n      refused({name}_run(&library, &wrong), "{what}");'
            for code, what in calls[:80]]


def call_text(about, function, sizes, is_refused):
    name, tensors = function["name"], lambda part: function[part]
    lines = ["  {", f"    {name}_call call;", "    memset(&call, 0, sizeof call);"]
    lines += [f"    call.dims.{d['member']} = {sizes[d['name']]};" for d in about["dims"]]
    lines += [f"    call.inputs.{t['member']} = get(in, {bytes_of(t, sizes)});" for t in tensors("inputs")]
    lines += [f"    call.outputs.{t['member']} = get(NULL, {bytes_of(t, sizes)});" for t in tensors("outputs")]
    lines += ["    call.states = &states;"] if about["states"] else []
    lines += ["    call.workspace = workspace;", "    call.workspace_bytes = (size_t)bytes;",
              "    if (threads > 0) call.workers = &pool.workers;"]
    lines += ["    if (faults) {", f"      const lathe_workers none = {{NULL, NULL, 2}};", f"      {name}_call wrong;",
              *wrong_calls(about, function, sizes), "      (void)none;", "    }"] if not is_refused else []
    lines.append(f"    const int32_t error = {name}_run(&library, &call);")
    if is_refused:
        lines.append('    refused(error, "a run that lathe run refuses");')
    else:
        lines.append(f'    if (error != 0) return printf("%s\\n", {name.split("_")[0]}_message(error)), 94;')
        lines += [f"    put(out, call.outputs.{t['member']}, {bytes_of(t, sizes)});" for t in tensors("outputs")]
    lines.append("    memset(workspace, 0xff, (size_t)bytes);")
    lines += [f"    free((void *)(size_t)call.{part}.{t['member']});" for part in ("inputs", "outputs")
              for t in tensors(part)]
    return lines + ["  }"]


def program_text(about, calls, most):
    arguments = ["&library"] + ["NULL"] * bool(about["dims"]) + ["NULL", "0"] * bool(about["states"])
    lines = [f"  if (lib_init({', '.join(arguments)}) != 0) return 95;",
             "  const int64_t bytes = lib_workspace_bytes(&library, threads > 1 ? threads : 1);",
             "  void *workspace = get(NULL, (size_t)bytes);"]
    lines += ["  lib_states states;"] if about["states"] else []
    lines += [f"  states.{s['member']} = get(in, {bytes_of(s, most)});" for s in about["states"]]
    for function, sizes, is_refused in calls:
        lines += call_text(about, function, sizes, is_refused)
    lines += [f"  put(out, states.{s['member']}, {bytes_of(s, most)});\n  free(states.{s['member']});"
              for s in about["states"]]
    lines += ["  free(workspace);", "  if (threads > 0) lathe_pool_stop(&pool);", "  fclose(in), fclose(out);",
              "  (void)refused, (void)faults;", "  return bad ? 96 : 0;", "}"]
    return START + "\n".join(lines) + "\n"


def largest_sizes(options, graph, folder):
    """Returns --max for the graph: its dims, with one size for all of them or those of the option."""
    if not options.max.isdigit():
        return dict((name, int(size)) for name, size in (one.split("=") for one in options.max.split(",")))
    sizes = {}
    while True:
        done = run(options.lathe, "compile", graph, "--prefix", "lib", "--emit=header", "-o", str(folder),
                   *(["--max", ",".join(f"{n}={s}" for n, s in sizes.items())] if sizes else []))
        missing = re.search(r"the dim (\S+) has no largest size", done.stdout)
        if not missing:
            return sizes
        sizes[missing[1]] = int(options.max)


def check(options, graph, folder):
    most = largest_sizes(options, graph, folder)
    must(options.lathe, "compile", graph, "--prefix", "lib", "--target", options.target,
         "--emit=archive,header,helpers", "-o", str(folder), *options.option,
         *(["--max", ",".join(f"{n}={s}" for n, s in most.items())] if most else []))
    (folder / "describe.c").write_text('#include <stdio.h>\n#include "lib.h"\nint main(void) { return puts(lib_describe()) < 0; }\n')
    library = [f"-I{folder}", f"-L{folder}"]
    must("cc", *FLAGS, *library, f"{folder}/describe.c", "-llib", "-lm", "-o", f"{folder}/describe")
    about = json.loads(must(f"{folder}/describe"))
    function, draw = about["functions"][0], random.Random(options.seed)
    all_sizes = [{d["name"]: most[d["name"]] for d in about["dims"]}]
    if about["dims"]:
        all_sizes += [{n: 1 for n in most}, {n: (s + 1) // 2 for n, s in most.items()}, all_sizes[0]]
    states = {s["name"]: (s["dtype"], shape_of(s, most), values_of(s, most, draw, options.integers))
              for s in about["states"]}
    given, expected, calls = b"".join(states[s["name"]][2] for s in about["states"]), b"", []
    for sizes in all_sizes:
        inputs = {t["name"]: (t["dtype"], shape_of(t, sizes), values_of(t, sizes, draw, options.integers))
                  for t in function["inputs"]}
        given += b"".join(inputs[t["name"]][2] for t in function["inputs"])
        write_safetensors(folder / "arguments.safetensors", {**states, **inputs})
        done = run(options.lathe, "run", graph, "-i", f"{folder}/arguments.safetensors", "-o",
                   f"{folder}/results.safetensors", "--target", options.target.split(",")[-1], *options.run_option,
                   *[x for n, s in sizes.items() for x in ("--dim", f"{n}={s}")])
        calls.append((function, sizes, done.returncode != 0))
        if done.returncode != 0:
            continue
        results = read_safetensors(folder / "results.safetensors")
        expected += b"".join(results[t["name"]] for t in function["outputs"])
        for name, (dtype, shape, _) in states.items():
            if name in results:
                states[name] = (dtype, shape, results[name])
    if all(is_refused for _, _, is_refused in calls):
        raise RuntimeError(f"lathe run refuses all sizes: {done.stdout}")
    expected += b"".join(states[s["name"]][2] for s in about["states"])
    (folder / "in").write_bytes(given)
    (folder / "main.c").write_text(program_text(about, calls, most))
    must("cc", *FLAGS, *library, f"{folder}/main.c", "-llib", "-lm", "-pthread", "-o", f"{folder}/main")
    for threads in (0, 1, 2, 7):
        must(*options.under.split(), f"{folder}/main", f"{folder}/in", f"{folder}/out", str(threads),
             *(["faults"] if threads == 0 else []))
        found = (folder / "out").read_bytes()
        if found != expected:
            first = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
            raise RuntimeError(f"with {threads} threads, byte {first} of {len(expected)} differs")
    return sum(not is_refused for _, _, is_refused in calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lathe", help="the command")
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--max", default="5", help="largest sizes, such as B=3,T=16, or one number for all dims")
    parser.add_argument("--target", default="x86-64-v3", help="levels, lowest first; the last one must run here")
    parser.add_argument("--integers", type=int, default=2, help="integers are below this number")
    parser.add_argument("--option", action="append", default=[], help="of lathe compile, such as --option=--evaluation")
    parser.add_argument("--run-option", action="append", default=[], help="of lathe run")
    parser.add_argument("--under", default="", help="runs programs under a command, such as 'valgrind -q'")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    for graph in options.graphs:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{graph}: {check(options, graph, pathlib.Path(folder))} calls have the bits of lathe run", flush=True)
            except RuntimeError as error:
                failed += 1
                print(f"{graph}: FAILED: {error}", flush=True)
    sys.exit(f"{failed} of {len(options.graphs)} graphs failed" if failed else 0)


if __name__ == "__main__":
    main()
