#include "tests/tools/command.h"

using Catch::Contains;
using lathe::test::Cache;
using lathe::test::run_lathe;
using lathe::test::Scratch;

TEST_CASE("compile prints a graph's kernels as CUDA C++ that names ops and source lines", "[tools]") {
  const Scratch scratch;
  scratch.write("small.lathe", lathe::test::small_program);
  const auto text = run_lathe(scratch, "compile small.lathe --emit=cuda");
  INFO(text.err);
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("#include \"lathe.cuh\"") && Contains("extern \"C\" __global__ void"));
  CHECK_THAT(text.out, Contains("small.cpp:8") && Contains("_small_cpp_"));
  CHECK(text.out.find("#include", text.out.find("#include") + 1) == std::string::npos);
  const auto header = run_lathe(scratch, "compile small.lathe --emit=prelude -o lathe.cuh");
  CHECK(header.status == 0);
  CHECK_THAT(scratch.read("lathe.cuh"), Contains("namespace lathe {") && Contains("struct alignas"));
}

TEST_CASE("compile rejects targets other than GPUs", "[tools]") {
  const Scratch scratch;
  scratch.write("small.lathe", lathe::test::small_program);
  const auto target = run_lathe(scratch, "compile small.lathe --target=tpu");
  CHECK(target.status == 1);
  CHECK_THAT(target.err, Contains("[unknown_target]"));
  const auto arch = run_lathe(scratch, "compile small.lathe --target=cuda:sm_35");
  CHECK(arch.status == 1);
  CHECK_THAT(arch.err, Contains("[unknown_arch]") && Contains("sm_90a"));
  CHECK(run_lathe(scratch, "compile small.lathe --emit=sass").status == 2);
}

TEST_CASE("compile writes PTX and cubins, and caches them", "[tools]") {
  const Scratch scratch(Cache::own);
  scratch.write("small.lathe", lathe::test::small_program);
  const auto ptx = run_lathe(scratch, "compile small.lathe --target=cuda:sm_90a --emit=ptx");
  if (ptx.status != 0 && ptx.err.find("[nvrtc_missing]") != std::string::npos) {
    std::printf("SKIP: %s\n", ptx.err.c_str());
    return;
  }
  INFO(ptx.err);
  CHECK(ptx.status == 0);
  CHECK_THAT(ptx.out, Contains(".target sm_90a") && Contains(".visible .entry"));
  const std::string command = "compile small.lathe --target=cuda:sm_80 --emit=cubin";
  CHECK(run_lathe(scratch, command).status == 1);  // requires a folder
  const auto first = run_lathe(scratch, command + " -o kernels");
  INFO(first.err);
  CHECK(first.status == 0);
  CHECK_THAT(first.out, Contains(".cubin") && Contains("registers") && !Contains("cached"));
  CHECK_THAT(run_lathe(scratch, command + " -o kernels").out, Contains("cached"));
}

TEST_CASE("packed weights: their memory is reported, and the option is refused where it has no effect", "[tools]") {
  const Scratch scratch;
  scratch.write("product.lathe", R"(graph @product(input %x: f32[n, 64], parameter %w: f32[96, 64]) {
  %1 = linear %x, %w
  output "y" %1
})");
  const auto bench = [&](const std::string& option) {
    return run_lathe(scratch, "bench product.lathe --dim n=8 --repeat 1 --target x86-64-v3 " + option);
  };
  CHECK_THAT(bench("").out, Contains(", packed weights 24.0 KiB\n"));
  CHECK_THAT(bench("--packed-weights 24KiB").out, Contains(", packed weights 24.0 KiB\n"));
  for (const std::string option : {"--packed-weights off", "--packed-weights 23KiB", "--memory-budget 1MiB"})
    CHECK_THAT(bench(option).out, !Contains("packed weights"));
  CHECK_THAT(bench("--packed-weights 5x").err, Contains("'5x' is not a size in bytes  [size_text]"));
  const auto compile = [&](const std::string& options) {
    return run_lathe(scratch, "compile product.lathe --packed-weights 1MiB " + options).err;
  };
  CHECK_THAT(compile("--prefix p --max n=8 --target sm_90a"), Contains("library for GPUs  [usage]"));
  CHECK_THAT(compile("--emit=cuda"), Contains("--packed-weights has no effect on CUDA code  [usage]"));
}
