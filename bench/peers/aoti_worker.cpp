// A package of AOTInductor as a process that waits for commands: bench/run_aot.py compiles it against PyTorch's
// libraries. The arguments, the answers and the commands are those of bench/workers/c_library.c:
//   aoti_worker THREADS BATCH LENGTH PACKAGE.pt2
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 5) return 1;
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const c10::InferenceMode mode;
  at::set_num_threads(std::atoi(argv[1]));
  const long batch = std::atol(argv[2]), length = std::atol(argv[3]);
  torch::inductor::AOTIModelPackageLoader loader(argv[4], "model", true);  // one run at a time
  const at::Tensor tokens =
      (at::arange(batch * length, at::kLong) * 7919 + 13).remainder(30522).view({batch, length});
  const auto run = [&] { return loader.run({tokens})[0]; };
  const at::Tensor result = run().contiguous();
  std::printf("{\"values\":[");
  for (int i = 0; i < 64; ++i)
    std::printf(i == 0 ? "%.9g" : ",%.9g", static_cast<double>(result.data_ptr<float>()[i]));
  std::puts("]}");
  std::fflush(stdout);
  for (int runs; std::scanf(" run %d", &runs) == 1;) {
    std::printf("{\"seconds\":[");
    for (int i = 0; i < runs; ++i) {
      const double before = now();
      run();
      std::printf(i == 0 ? "%.9f" : ",%.9f", now() - before);
    }
    std::puts("]}");
    std::fflush(stdout);
  }
}
