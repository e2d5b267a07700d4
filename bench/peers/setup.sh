#!/usr/bin/env bash
# Installs the peers that bench/ compares Lathe with: PyTorch, JAX, NumPy and oneDNN in a virtual environment,
# OpenBLAS from Debian 12. Not part of Lathe's own setup: only bench/run_*.py and bench_gemm need it. bench_gemm is
# linked with oneDNN if CMake finds it (-DCMAKE_PREFIX_PATH=FOLDER) and loads OpenBLAS at run time.
#
#   bench/peers/setup.sh [FOLDER]     FOLDER: the environment to make or to complete; default .bench-peers in the
#                                     repository, which git ignores
#
# The default pip index has PyTorch's CUDA build; `import torch` needs its libraries even without a GPU. Only those
# that it links to are installed: 4.7 GB in total. torch.compile needs g++ and Python's headers.
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

# The wheel's requirements without those that are never loaded on a CPU: Triton, CUDA's Python bindings, cuSOLVER,
# NVTX.
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

# PyTorch's x86 build uses MKL for matmuls, which enables its AVX-512 code only on Intel CPUs. On others, run_steps.py
# preloads this library so that the peer runs at full speed: 2.3 times as fast on Zen 5.
printf 'int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n' |
  g++ -x c -shared -fPIC -O1 -o "$folder/lib/libmkl_any_cpu.so" -

"$folder/bin/python" - <<'PYTHON'
import jax, numpy, torch
print(f'PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), JAX {jax.__version__}, '
      f'NumPy {numpy.__version__}')
PYTHON
