#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <set>

#include "passes/pipeline/pipeline.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Values written in place of others: a kernel must read its operands before they are overwritten.
using namespace lathe;
using lathe::test::check_compiled;
using lathe::test::parse;

namespace {

const LowerOptions unfused{.attention = AttentionFusion::off};

void check(std::string_view text, const std::vector<DimBindings>& sizes) {
  static lathe::test::KernelStore store;
  check_compiled(parse(text), {.sizes = sizes, .store = &store});
}

int copies(std::string_view text) {
  const Program program = lower_cpu(ir::run_pipeline(parse(text), ir::default_pipeline()).graph, unnamed_cpu());
  int count = 0;
  for (const Launch& launch : program.launches) count += launch.info.role == KernelRole::copy ? 1 : 0;
  return count;
}

/// Number of distinct arena locations of values, without fused attention.
int places(std::string_view text) {
  const Program program =
      lower_cpu(ir::run_pipeline(parse(text), ir::default_pipeline()).graph, unnamed_cpu(), unfused);
  std::set<int> found;
  for (const Launch& launch : program.launches)
    for (const int b : launch.buffers) {
      const ProgramBuffer& buffer = program.buffers[static_cast<std::size_t>(b)];
      if (buffer.kind == ProgramBuffer::Kind::temporary && buffer.name.starts_with("%")) found.insert(b);
    }
  for (const int b : found) UNSCOPED_INFO(program.buffers[static_cast<std::size_t>(b)].name);
  return static_cast<int>(found.size());
}

/// Compares compiled code and the kernel interpreter with the reference, without fused attention.
void check_unfused(std::string_view text) {
  const ir::Graph graph = parse(text);
  Executable executable = compile(graph, {.threads = 2, .lower = unfused});
  const auto lower_wide = [](const ir::Graph& g, const LowerOptions& options) {
    return lower_cpu(g, unnamed_cpu(), options);
  };
  const lathe::test::ProgramInterpreter kernels(graph, lower_wide, unfused);
  for (const std::int64_t n : {1, 5, 19}) {
    const Tensors arguments = lathe::test::random_arguments(graph, {{"n", n}});
    const HostTensor expected = ir::interpret(graph, arguments).at("y");
    for (const HostTensor& y : {executable.run(arguments).at("y"), kernels.run(arguments).at("y")}) {
      REQUIRE(y.shape() == expected.shape());
      for (std::int64_t i = 0; i < y.numel(); ++i) CHECK(y.get(i) == Approx(expected.get(i)).margin(1e-12));
    }
  }
}

const std::vector<DimBindings> n_sizes = {{{"n", 5}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}};

}  // namespace

TEST_CASE("in place: a state takes the buffer of a value that does not read it, and so does another result") {
  check(R"(graph @g(input %x: f64[n, 3], state %m: f64[n, 3]) {
  %1 = exp %x
  %2 = add %m, %1
  update %m <- %1
  output "y" %2
})",
        n_sizes);
  check(R"(graph @g(input %x: f64[n, 6], state %m: f64[n], state %w: f64[6, 6], state %u: f64[n, 6]) {
  %1 = sum %x {dims=[1]}
  %2 = add %m, %1
  %3 = contract %x, %w {spec="nk,kj->nj"}
  %4 = add %u, %3
  update %m <- %1
  update %u <- %3
  output "y" %2
  output "z" %4
})",
        n_sizes);
}

TEST_CASE("in place: a matmul with inlined operands") {
  constexpr std::string_view elsewhere = R"(graph @g(input %x: f64[n, 5], input %y: f64[n, 6], state %w: f64[5, 6]) {
  %1 = add %y, %y
  %2 = contract %x, %1 {spec="nk,nj->kj"}
  %3 = sub %w, %2
  update %w <- %3
})";
  check(elsewhere, n_sizes);
  CHECK(copies(elsewhere) == 0);
  constexpr std::string_view own = R"(graph @g(input %x: f64[5, 6], state %w: f64[6, 6]) {
  %1 = neg %w
  %2 = contract %x, %1 {spec="nk,kj->nj"}
  %3 = contract %1, %1 {spec="ik,kj->ij"}
  %4 = sub %w, %3
  output "y" %2
  update %w <- %4
})";
  check(own, {});
  CHECK(copies(own) == 1);
}

TEST_CASE("in place: a softmax overwrites dead scores, with exponentials spilled there") {
  constexpr std::string_view text = R"(graph @g(input %x: f64[n, 4], input %w: f64[37, 4], input %v: f64[37, 3]) {
  %1 = contract %x, %w {spec="nk,vk->nv"}
  %2 = softmax %1 {dim=1}
  %3 = contract %2, %v {spec="nv,vj->nj"}
  output "y" %3
})";
  check_unfused(text);
  CHECK(places(text) == 2);  // scores and exponentials; sums
}

TEST_CASE("in place: not over a value that a later kernel reads") {
  constexpr std::string_view text = R"(graph @g(input %x: f64[n, 4], input %w: f64[37, 4], input %v: f64[37, 37]) {
  %1 = contract %x, %w {spec="nk,vk->nv"}
  %2 = softmax %1 {dim=1}
  %3 = contract %2, %v {spec="nv,vj->nj"}
  %4 = softmax %3 {dim=1}
  %5 = contract %4, %1 {spec="nv,nj->vj"}
  output "y" %5
})";
  check_unfused(text);
  CHECK(places(text) == 5);  // %1; the inputs of %2 and %4: exponentials, the second in place of %3, and sums
}

TEST_CASE("in place: not over a value that is read at another element") {
  constexpr std::string_view text = R"(graph @g(input %x: f64[19, n], input %w: f64[19, n], input %v: f64[19, 3]) {
  %1 = contract %x, %w {spec="ik,jk->ij"}
  %2 = transpose %1 {dim0=0, dim1=1}
  %3 = add %1, %2
  %4 = softmax %3 {dim=1}
  %5 = contract %4, %v {spec="nv,vj->nj"}
  output "y" %5
})";
  check_unfused(text);
  CHECK(places(text) == 3);
}

TEST_CASE("in place: not over a value that a later loop over the row reads, but the last loop may overwrite it") {
  constexpr std::string_view text = R"(graph @g(input %x: f64[n, 4], input %w: f64[37, 4]) {
  %1 = contract %x, %w {spec="nk,vk->nv"}
  %2 = softmax %1 {dim=1}
  %3 = mul %2, %1
  %4 = sum %3 {dims=[1], keepdim=true}
  %5 = sub %1, %4
  %6 = softmax %5 {dim=1}
  %7 = contract %2, %6 {spec="nv,nj->vj"}
  output "y" %7
})";
  check_unfused(text);
  CHECK(places(text) == 3);  // %1 and the last exponentials; %2; sums
}

TEST_CASE("in place: the result of attention overwrites a state that it does not read") {
  const auto text = [](std::string_view updates, std::string_view keys = "k") {
    return fmt::format(R"(graph @g(input %q: f64[n, 6], state %k: f64[n, 6], state %m: f64[n, 6]) {{
  %1 = contract %q, %{} {{spec="nd,td->nt"}}
  %2 = softmax %1 {{dim=1}}
  %3 = contract %2, %k {{spec="nt,td->nd"}}
  {}
}})",
                       keys, updates);
  };
  const std::string apart = text("update %m <- %3"), scores_from_it = text("update %m <- %3", "m"),
                    over_its_keys = text("update %k <- %3");
  for (const std::string& graph : {apart, scores_from_it, over_its_keys}) check(graph, n_sizes);
  CHECK(copies(apart) == 0);
  CHECK(copies(scores_from_it) == 1);
  CHECK(copies(over_its_keys) == 1);
}
