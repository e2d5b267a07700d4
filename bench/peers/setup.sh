#!/usr/bin/env bash
# Installs what bench/ compares Lathe with: PyTorch, JAX, NumPy and oneDNN into a virtual environment, OpenBLAS from Debian
# 12. No part of Lathe's own set-up: nothing but bench/run_*.py needs it, and bench_gemm, which is linked with oneDNN where
# CMake finds it (-DCMAKE_PREFIX_PATH=FOLDER) and opens OpenBLAS when it runs.
#
#   bench/peers/setup.sh [FOLDER]     FOLDER: the environment to make or to complete; default .bench-peers in the
#                                     repository, which git ignores
#
# The index that pip is set up with has PyTorch's CUDA build; `import torch` needs its libraries even where there is
# no GPU. Only those that it is linked to are installed: 4.7 GB in all. torch.compile needs g++ and Python's headers.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/.bench-peers}
python=${PYTHON:-python3}

mkdir -p "$folder"
free=$(df --output=avail -BG "$folder" | tail -1 | tr -dc 0-9)
if [ "$free" -lt 8 ] && [ ! -d "$folder/lib" ]; then
  echo "peers: $folder has $free GB free; 8 GB are needed" >&2
  exit 1
fi

if command -v dpkg-query >/dev/null; then
  bash "$root/tools/setup.sh" --only g++ python3-dev python3-venv libopenblas-dev
fi

[ -x "$folder/bin/pip" ] || "$python" -m venv "$folder"
pip=("$folder/bin/pip" install --quiet)
"${pip[@]}" numpy jax onednn-cpu-gomp onednn-devel-cpu-gomp
"$folder/bin/python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' ||
  "${pip[@]}" --no-deps torch

# What the wheel asks for, less what nothing on a CPU loads: Triton, CUDA's Python bindings, cuSOLVER, NVTX.
mapfile -t needed < <("$folder/bin/python" - <<'PYTHON'
import importlib.metadata, re
for line in importlib.metadata.requires('torch') or []:
    if 'extra ==' in line:
        continue
    need = line.split(';')[0].strip()
    if re.match(r'(triton|cuda-bindings)\b', need):
        continue
    print(re.sub(r'cuda-toolkit\[[^]]*\]', 'cuda-toolkit[cublas,cudart,cufft,cufile,cupti,cusparse,nvjitlink,nvrtc]',
                 need))
PYTHON
)
"${pip[@]}" "${needed[@]}"

# PyTorch's x86 build multiplies matrices by MKL, which takes its AVX-512 code on Intel's processors alone. Elsewhere
# run_steps.py loads this answer first, so that the peer is as fast as it can be: 2.3 times as fast on Zen 5.
printf 'int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n' |
  g++ -x c -shared -fPIC -O1 -o "$folder/lib/libmkl_any_cpu.so" -

"$folder/bin/python" - <<'PYTHON'
import jax, numpy, torch
print(f'PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), JAX {jax.__version__}, '
      f'NumPy {numpy.__version__}')
PYTHON
