#include <catch2/catch.hpp>

#include <algorithm>

#include "ir/kernel/build/builder.h"
#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "tests/cuda/attention/attention_cases.h"
#include "tests/cuda/host/kernels.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/kernels/random_product.h"
#include "tests/support/kernels/tile_product.h"
#include "tests/support/kernels/wgmma_product.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Runs the CUDA text of every schedule under ThreadSanitizer, with an OS thread per thread of a block. It must have
/// no races, and races inserted by hand must be found.
using namespace lathe;
using namespace lathe::kernel;
using test::ProgramInterpreter;
using test::Race;
using test::RacingCuda;
using test::tile_product;
using test::TileProduct;
using test::wgmma_product;
using test::WgmmaProduct;

namespace {

struct Case {
  std::string_view what;
  ir::Graph graph;
  double tolerance;
  bool warpgroups = false;
};

std::vector<Case> schedules() {
  const auto graph = [](std::string_view text) { return ir::parse_graph(std::string(text), "schedule"); };
  std::vector<Case> cases;
  cases.push_back({"points", graph(R"(graph @points(input %x: f32[n, 33]) {
  %1 = gelu %x
  output "y" %1
})"),
                   1e-5});
  cases.push_back({"rows, by a warp, by several, and by a whole block", graph(R"(
graph @rows(input %x: f32[3, 40], input %v: f32[600]) {
  %1 = softmax %x {dim=1}
  %2 = sum %v {dims=[0]}
  output "y" %1
  output "sum" %2
})"),
                   1e-5});
  cases.push_back({"rows in pieces, each loop a kernel", graph(R"(graph @pieces(input %x: f32[22000]) {
  %1 = softmax %x {dim=0}
  output "y" %1
})"),
                   1e-5});
  cases.push_back({"columns, in one piece and in several", graph(R"(
graph @columns(input %x: f32[70, 9], input %z: f32[2048, 9]) {
  %1 = sum %x {dims=[0]}
  %2 = sum %z {dims=[0]}
  output "y" %1
  output "z" %2
})"),
                   1e-5});
  cases.push_back({"scatter_add", graph(R"(graph @scatter(input %x: f32[6, 5], input %i: i64[6]) {
  %1 = scatter_add %i, %x {dim=0, size=3}
  output "y" %1
})"),
                   1e-5});
  cases.push_back({"cumsum: rows of several blocks, columns",
                   graph(R"(graph @scan(input %x: f32[3, 600], input %z: i64[40, 5]) {
  %1 = cumsum %x {dim=1, exclusive=true}
  %2 = cumsum %x {dim=1, reverse=true}
  %3 = cumsum %z {dim=0}
  output "before" %1
  output "after" %2
  output "columns" %3
})"),
                   1e-5});
  cases.push_back({"linear_recurrence: rows of several blocks, columns",
                   graph(R"(graph @recurrence(input %x: f32[3, 600], input %z: f64[40, 5]) {
  %1 = tanh %x
  %2 = linear_recurrence %1, %x {dim=1}
  %3 = linear_recurrence %1, %x {dim=1, reverse=true}
  %4 = linear_recurrence %z, %z {dim=0}
  output "forward" %2
  output "backward" %3
  output "columns" %4
})"),
                   1e-5});
  cases.push_back({"argsort, top_k, scatter",
                   graph(R"(graph @sort(input %x: f32[3, n], input %i: i64[4, 5], input %y: f32[4, 5]) {
  %1 = argsort %x {dim=1, descending=true}
  %2 = top_k %x {k=2, dim=0}
  %3 = update_rows %y, %i, %y {dim=0}
  output "order" %1
  output "best" %2
  output "set" %3
})"),
                   1e-5});
  cases.push_back({"cholesky by a block, triangular systems",
                   graph(R"(graph @triangular(input %x: f32[2, 5, 5], input %b: f32[2, 5, 3]) {
  %1 = transpose %x {dim0=1, dim1=2}
  %2 = matmul %x, %1
  %8 = iota {dtype=f32, dim=0, shape=[5, 1]}
  %9 = iota {dtype=f32, dim=1, shape=[1, 5]}
  %10 = eq %8, %9
  %11 = cast %10 {dtype=f32}
  %c = constant {dtype=f32, shape=[], values=[9]}
  %12 = mul %11, %c
  %13 = add %2, %12
  %14 = cholesky %13
  %15 = solve_triangular %14, %b
  output "factor" %14
  output "x" %15
})"),
                   1e-4});
  cases.push_back({"bases by a block",
                   graph(R"(graph @bases(input %x: f32[2, 5, 3], input %s: f32[4, 4], input %y: f32[4, 4]) {
  %1 = orthonormal_basis %x
  %2 = eigenvectors %s
  %3 = sum %s {dims=[0, 1]}
  %4 = sub %3, %3
  %5 = lt %4, %3
  %6 = orthonormal_basis %s, %5, %y
  output "basis" %1
  output "vectors" %2
  output "some" %6
})"),
                   1e-4});
  cases.push_back(
      {"grouped products",
       graph(R"(graph @grouped(input %x: f32[20, 7], input %y: f32[20, 9], input %n: i64[2], input %w: f32[9, 7]) {
  %1 = cumsum %n {dim=0}
  %2 = pad %1 {dim=0, low=1, high=0}
  %3 = grouped_matmul %x, %2, %w, %w
  %4 = segment_outer %y, %x, %2 {segment=1}
  output "y" %3
  output "w" %4
})"),
       1e-5});
  cases.push_back({"a product", graph(R"(graph @product(input %x: f32[m, 40], input %w: f32[40, 66]) {
  %1 = matmul %x, %w
  output "y" %1
})"),
                   1e-5});
  cases.push_back({"products of few rows: by a warp, by several, and along the columns", graph(R"(
graph @gemv(input %x: f32[2, 40], input %w: f32[9, 40], input %z: f32[1, 4096], input %v: f32[3, 4096],
    input %u: f32[40, 20]) {
  %1 = linear %x, %w
  %2 = linear %z, %v
  %3 = matmul %x, %u
  output "y" %1
  output "z" %2
  output "u" %3
})"),
                   1e-5});
  cases.push_back({"a product by tensor cores, with split-K", graph(R"(
graph @tensor_product(input %x: bf16[k, 16], input %dy: bf16[k, 64]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = matmul %1, %dy
  output "y" %2
})"),
                   8e-3});
  cases.push_back({"a product by warpgroups",
                   graph(R"(graph @wgmma_product(input %x: f16[m, 72], input %w: f16[72, 128]) {
  %1 = matmul %x, %w
  output "y" %1
})"),
                   8e-3, true});
  cases.push_back({"attention", test::causal_attention(f32, 12, 20), 1e-5});
  cases.push_back({"attention on tensor cores", test::causal_attention(bf16, 16, 16), 1.6e-2});
  return cases;
}

/// Returns the result of a product, or "race" and the report.
template <class Run>
std::string race_of(const Run& run) {
  try {
    run();
  } catch (const Race& race) {
    return race.what();
  }
  return "";
}

std::string race_of_product(RacingCuda& cuda, const Kernel& kernel, std::vector<std::int64_t> dims) {
  return race_of([&] {
    test::random_product(bf16, 32768, 64 * 128 * 2, std::move(dims),
                         [&](auto buffers, auto sizes) { cuda.run(kernel, buffers, sizes); });
  });
}

}  // namespace

TEST_CASE("races: detects a missing barrier, blocks that write the same element") {
  Builder b("meddling");
  const Buffer y = b.buffer("y", f32, Access::write);
  const auto thread = [&](Value t) { b.store(y, t, b.constant(f32, 1)); };
  const auto block = [&](Value) { b.for_loop(0, 32, 1, thread, LoopKind::thread_x); };
  b.for_loop(0, 2, 1, block, LoopKind::block_x);
  const Kernel kernels[] = {test::reverse_kernel(), test::reverse_kernel(false), b.finish()};
  auto cuda = RacingCuda::build(kernels);
  if (!cuda) return;
  std::vector<float> x(96, 1), y_found(96);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const BoundBuffer buffers[] = {{x.data(), 96}, {y_found.data(), 96}};
  const std::int64_t dims[] = {3};
  CHECK(cuda->run(kernels[0], buffers, dims) == 0);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y_found[i] == x[i / 32 * 32 + 31 - i % 32]);
  const std::string missing = race_of([&] { cuda->run(kernels[1], buffers, dims); });
  for (const char* part : {"data race", "k2_reverse", "piece", "kernels.cpp:"})
    CHECK(missing.find(part) != std::string::npos);
  const std::string meddling = race_of([&] { cuda->run(kernels[2], {&buffers[1], 1}, {}); });
  CHECK(meddling.find("k3_meddling") != std::string::npos);
}

TEST_CASE("races: detects missing waits for copies, threads of a warp that only meet in mma, pipelines out of step") {
  TileProduct unwaited, unordered;
  unwaited.waits = false, unordered.barrier = false;
  const WgmmaProduct pipeline{.right_transposed = true, .tiles = 2};
  const WgmmaProduct boxes{.right_transposed = true, .tiles = 2, .left_boxes = true, .right_boxes = true};
  const Kernel kernels[] = {tile_product({}), tile_product(unwaited), tile_product(unordered),
                            wgmma_product(pipeline), wgmma_product(boxes)};
  auto cuda = RacingCuda::build(kernels);
  if (!cuda) return;
  CHECK(race_of_product(*cuda, kernels[0], {37, 64, 64}) == "");
  CHECK_FALSE(race_of_product(*cuda, kernels[1], {37, 64, 64}).empty());
  CHECK_FALSE(race_of_product(*cuda, kernels[2], {37, 64, 64}).empty());
  CHECK(race_of_product(*cuda, kernels[3], {130, 200, 200}) == "");
  CHECK(race_of_product(*cuda, kernels[4], {136, 200, 200}) == "");
  const auto finds = [&](std::string_view text, std::string_view mistake, int number = 3) {
    INFO(mistake << " for " << text << " in kernel " << number);
    std::string prelude = cuda::prelude();
    const auto at = prelude.find(text);
    REQUIRE(at != std::string::npos);
    prelude.replace(at, text.size(), mistake);
    auto wrong = RacingCuda::build({&kernels[number], 1}, prelude);
    REQUIRE(wrong);
    CHECK(race_of_product(*wrong, kernels[number], {136, 200, 200}).find("data race") != std::string::npos);
  };
  finds("wait_barrier(barriers + at, round);", "");
  finds("wait_barrier(barriers + stages + at, round ^ 1);", "");
  finds("__syncwarp();", "");
  finds("wait_wgmma<1>();", "");
  finds("empty(held);\n    held = at;", "empty(at);");
  finds("wait_barrier(barriers + at, round);", "", 4);
}

TEST_CASE("races: none in the CUDA text of any schedule") {
  std::vector<Case> cases = schedules();
  std::vector<ProgramInterpreter> programs;
  std::vector<Kernel> kernels;
  for (const Case& c : cases) {
    programs.emplace_back(c.graph, c.warpgroups ? lower_gpu_sm_90a : lower_gpu,
                          LowerOptions{.attention = AttentionFusion::required});
    const auto& own = programs.back().program().kernels;
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  auto cuda = RacingCuda::build(kernels);
  if (!cuda) return;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].what);
    const Tensors arguments =
        test::random_arguments(cases[i].graph, {{"n", 7}, {"m", 67}, {"k", 40}, {"N", 1}, {"S", 66}});
    const Tensors expected = ir::interpret(cases[i].graph, arguments);
    const Tensors found = programs[i].run(
        arguments, [&](const auto& kernel, auto buffers, auto dims) { return cuda->run(kernel, buffers, dims); });
    for (const auto& [name, value] : expected) CHECK(test::error_of(found.at(name), value) <= cases[i].tolerance);
  }
}
