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
