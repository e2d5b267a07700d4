#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <regex>

#include "codegen/cuda/emitter.h"
#include "ir/tensor/text/parser.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Logits for an odd number of words, whose matmul has padded columns: the logits and their gradient are read and
/// written 16 bytes at a time.
using namespace lathe;
using lathe::test::HostCuda;
using lathe::test::ProgramInterpreter;

namespace {

ir::Graph loss(std::string_view dtype) {
  return ir::parse_graph(
      fmt::format(R"(graph @loss(input %x: {0}[m, 64], parameter %w: {0}[261, 64], input %t: i32[m, 1]) {{
  %1 = linear %x, %w
  %2 = cast %1 {{dtype=f32}}
  %3 = max %2 {{dims=[1], keepdim=true}}
  %4 = sub %2, %3
  %5 = exp %4
  %6 = sum %5 {{dims=[1], keepdim=true}}
  %7 = div %5, %6
  %8 = iota {{shape=[261], dim=0, dtype=i32}}
  %9 = eq %8, %t
  %10 = cast %9 {{dtype=f32}}
  %11 = sub %7, %10
  %12 = cast %11 {{dtype={0}}}
  %13 = contract %12, %w {{spec="mv,vd->md"}}
  %14 = contract %12, %x {{spec="mv,md->vd"}}
  %15 = log %6
  output "dx" %13
  output "dw" %14
  output "sums" %15
}})",
                  dtype),
      "loss");
}

}  // namespace

TEST_CASE("logits for an odd vocabulary size have padded columns on a GPU") {
  for (const std::string_view dtype : {"bf16", "f16", "f32"}) {
    INFO(dtype);
    const ir::Graph graph = loss(dtype);
    const ProgramInterpreter program(graph, lower_gpu_sm_90a);
    const std::vector<kernel::Kernel>& kernels = program.program().kernels;
    const bool wide = dtype == "f32";
    std::string all;
    for (const kernel::Kernel& k : kernels) {
      const std::string text = cuda::emit(k, gpu_info("sm_90a"));
      INFO(text);
      CHECK(text.find("* 261)") == text.npos);  // no row of that length is stored
      all += text;
    }
    const std::string lanes = wide ? "4" : "8";
    CHECK(std::regex_search(all, std::regex("load_aligned<" + lanes + R"(>\(b\d+, \(v\d+ \* 264\))")));
    CHECK(std::regex_search(all, std::regex(R"(store_aligned\(b\d+, \(v\d+ \* 264\))")));
    // One buffer for the logits and their gradient, in the dtype of the matmul; no other buffer has a row per word.
    const auto grows = [](const Dim& size) { return size.evaluate({{"m", 2}}) - size.evaluate({{"m", 1}}); };
    std::vector<DType> stored;
    for (const ProgramBuffer& buffer : program.program().buffers)
      if (grows(buffer.elements) >= 261) stored.push_back(buffer.dtype);
    CHECK(stored == std::vector<DType>{*parse_dtype(dtype)});
    const Tensors arguments = test::random_arguments(graph, {{"m", 37}});
    const Tensors expected = ir::interpret(graph, arguments), found = program.run(arguments);
    for (const auto& [name, value] : expected) {
      INFO(name);
      CHECK(test::error_of(found.at(name), value) <= (wide ? 1e-5 : 1.6e-2));
    }
    const auto host = HostCuda::build(kernels);
    if (!host) continue;
    const Tensors by_text = program.run(
        arguments, [&](const auto& kernel, auto buffers, auto dims) { return host->run(kernel, buffers, dims, 1); });
    for (const auto& [name, value] : found) {
      INFO(name);
      CHECK(test::error_of(by_text.at(name), value) <= 1e-2);
    }
  }
}
