#include "passes/gpu/reduction/long_reduction.h"

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Long reductions with few results, which are split among several blocks.
using namespace lathe;
using test::HostCuda;
using test::ProgramInterpreter;

namespace {

struct Case {
  std::string_view graph;  ///< the body of a graph
  std::size_t kernels;     ///< launches
  std::vector<DimBindings> sizes = {{}};
  double tolerance = 1e-5;

  ir::Graph parsed() const { return ir::parse_graph("graph @reduce(" + std::string(graph) + "}", "reduce"); }
  ProgramInterpreter program() const { return {parsed(), lower_gpu}; }
};

const std::vector<Case>& cut() {
  static const std::vector<Case> cases = {// One reduction of everything, ragged; with an epilogue.
                                          {R"(input %x: f32[60001]) {
  %1 = mul %x, %x
  %2 = sum %1 {dims=[0]}
  %3 = sqrt %2
  output "y" %3
)",
                                           2},
                                          // Two reductions of the same rows, two rows, and a result along them.
                                          {R"(input %x: f32[2, 41000]) {
  %1 = mul %x, %x
  %2 = sum %1 {dims=[1]}
  %3 = max %1 {dims=[1]}
  output "y" %1
  output "sum" %2
  output "max" %3
)",
                                           2},
                                          // Dependent reductions: a kernel for each loop over the row.
                                          {R"(input %x: f32[1, 41003]) {
  %1 = softmax %x {dim=1}
  output "y" %1
)",
                                           3,
                                           {{}},
                                           1e-5},
                                          {R"(input %x: f32[61000], input %s: f32[]) {
  %1 = mul %x, %x
  %2 = sum %1 {dims=[0]}
  %3 = sqrt %2
  %4 = div %x, %3
  %5 = add %3, %s
  output "y" %4
  output "norm" %5
)",
                                           3},
                                          // 16-bit floats are summed in f32; integers and booleans.
                                          {R"(input %x: bf16[130000]) {
  %1 = sum %x {dims=[0]}
  output "y" %1
)",
                                           2,
                                           {{}},
                                           1.6e-2},
                                          {R"(input %x: f64[3, 20001]) {
  %1 = mean %x {dims=[1]}
  output "y" %1
)",
                                           2,
                                           {{}},
                                           1e-12},
                                          // A symbolic length: 0, less than a split, several splits.
                                          {R"(input %x: f32[n]) {
  %1 = sum %x {dims=[0]}
  output "y" %1
)",
                                           2,
                                           {{{"n", 0}}, {{"n", 1}}, {{"n", 1025}}, {{"n", 30001}}}},
                                          // A few columns, with dims before the rows, and with a symbolic length.
                                          {R"(input %x: f32[9001, 5]) {
  %1 = sum %x {dims=[0]}
  output "y" %1
)",
                                           2},
                                          {R"(input %x: f32[2, 3000, 7]) {
  %1 = max %x {dims=[1]}
  output "y" %1
)",
                                           2},
                                          {R"(input %x: f32[b, s, 12], input %y: f32[b, s, 12]) {
  %1 = mul %x, %y
  %2 = sum %1 {dims=[0, 1]}
  output "y" %2
)",
                                           2,
                                           {{{"b", 0}, {"s", 3}}, {{"b", 1}, {"s", 1}}, {{"b", 3}, {"s", 1201}}}}};
  return cases;
}

const std::vector<Case>& whole() {
  static const std::vector<Case> cases = {
      // Short, many, or an unknown number of reductions.
      {"input %x: f32[4000]) {\n  %1 = sum %x {dims=[0]}\n  output \"y\" %1\n", 1},
      {"input %x: f32[512, 3000]) {\n  %1 = sum %x {dims=[1]}\n  output \"y\" %1\n", 1},
      {"input %x: f32[rows, n]) {\n  %1 = sum %x {dims=[1]}\n  output \"y\" %1\n", 1, {{{"rows", 2}, {"n", 3000}}}},
      {"input %x: f32[64, 768]) {\n  %1 = sum %x {dims=[0]}\n  output \"y\" %1\n", 1},
      {"input %x: f32[n, columns]) {\n  %1 = sum %x {dims=[0]}\n  output \"y\" %1\n",
       1,
       {{{"n", 3000}, {"columns", 3}}}}};
  return cases;
}

}  // namespace

TEST_CASE("few long reductions are split, and match unsplit reductions") {
  std::vector<ProgramInterpreter> programs;
  for (const Case& c : cut()) {
    programs.push_back(c.program());
    INFO(c.graph);
    CHECK(programs.back().program().launches.size() == c.kernels);
  }
  for (std::size_t i = 0; i < programs.size(); ++i)
    for (const DimBindings& dims : cut()[i].sizes) {
      INFO(cut()[i].graph);
      CAPTURE(dims);
      const ir::Graph graph = cut()[i].parsed();
      const Tensors arguments = test::random_arguments(graph, dims);
      const Tensors found = programs[i].run(arguments);
      for (const auto& [name, expected] : ir::interpret(graph, arguments))
        CHECK(test::error_of(found.at(name), expected) <= cut()[i].tolerance);
    }
}

TEST_CASE("the CUDA text of split reductions on the host") {
  std::vector<kernel::Kernel> kernels;
  const ProgramInterpreter rows = cut()[2].program(), columns = cut()[9].program();
  for (const ProgramInterpreter* p : {&rows, &columns})
    kernels.insert(kernels.end(), p->program().kernels.begin(), p->program().kernels.end());
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  const auto check = [&](const Case& c, const ProgramInterpreter& program, double tolerance) {
    const Tensors arguments = test::random_arguments(c.parsed(), c.sizes.back());
    const Tensors by_text = program.run(
        arguments, [&](const auto& kernel, auto buffers, auto sizes) { return host->run(kernel, buffers, sizes); });
    for (const auto& [name, value] : program.run(arguments))
      CHECK(test::error_of(by_text.at(name), value) <= tolerance);
  };
  check(cut()[2], rows, 1e-6);
  check(cut()[9], columns, 0);
}

TEST_CASE("short or many reductions are not split") {
  for (const Case& c : whole()) {
    INFO(c.graph);
    CHECK(c.program().program().launches.size() == c.kernels);
  }
}

TEST_CASE("the number of splits of a long reduction") {
  const auto splits = [](std::optional<std::int64_t> results, std::optional<std::int64_t> length) {
    return gpu::splits_of(
        {}, {},
        {.results = results, .length = length, .bytes = 4, .threads = 1024, .split_threads = 256, .kernels = 1});
  };
  CHECK(splits(1, 0) == 1);
  CHECK(splits(0, 1 << 20) == 1);
  CHECK(splits(1, 1024) == 1);
  CHECK(splits(1, 38'633'472) == 256);  // all of an embedding's gradient
  CHECK(splits(1, std::nullopt) > 64);
  CHECK(splits(std::nullopt, 1 << 20) == 1);
  CHECK(splits(std::nullopt, std::nullopt) == 1);
  CHECK(splits(16, 1 << 20) > 8);
  CHECK(splits(16, 1 << 20) < 128);
  CHECK(splits(1024, 1 << 20) == 1);
  for (std::int64_t length = 1; length < (1 << 26); length *= 2) CHECK(splits(1, length) <= splits(1, length * 2));
}

TEST_CASE("split reductions compile without spills and load 16 bytes at a time") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const ProgramInterpreter rows = cut()[0].program(), columns = cut()[9].program();
  std::vector<kernel::Kernel> kernels = {rows.program().kernels[0], columns.program().kernels[0],
                                         rows.program().kernels[1], columns.program().kernels[1]};
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"})
    for (const auto& k :
         cuda::compile_kernels(*nvrtc, kernels, cuda::Arch::named(arch), cuda::Output::cubin, nullptr)) {
      INFO(arch << " " << k.symbol << ": " << k.resources.to_string());
      CHECK(k.resources.spill_bytes == 0);
      CHECK(k.resources.registers <= 48);
      CHECK(k.resources.shared_bytes <= 8 * 1024);
    }
  const auto ptx = cuda::compile_kernels(*nvrtc, kernels, cuda::Arch::named("sm_80"), cuda::Output::ptx, nullptr);
  for (const std::size_t first : {0, 1}) CHECK(ptx[first].code.find("ld.global.nc.v4.f32") != std::string::npos);
}
