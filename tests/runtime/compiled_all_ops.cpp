#include <catch2/catch.hpp>

#include "passes/autodiff.h"
#include "tests/ops/samples.h"
#include "tests/runtime/check_compiled.h"
#include "tests/support/memory_store.h"
#include "tests/support/program_interpreter.h"

/// Every sample of every op, its value and its gradients, compiled against the interpreter.
namespace lathe::ir::test {

namespace {

using lathe::test::check_close;
using lathe::test::check_same;
using lathe::test::MemoryStore;
using lathe::test::Outcome;
using lathe::test::outcome;
using lathe::test::ProgramInterpreter;

bool differentiable(DType dtype) { return is_float(dtype) || is_complex(dtype); }

/// The sample as a graph with the output "y" and, where it has gradients, "grad.0" ... of sum(w * (y + y * y / 2)).
Graph graph_with_gradients(const Op& op, const Sample& sample, const SampleOptions& options) {
  GraphBuilder builder("sample");
  const GraphBuilder::At at(builder, Location("sample.cpp", 1));
  const auto operands = sample_operands(builder, sample, options);
  const Value y = builder.add(op, operands, sample.attrs);
  builder.output("y", y);
  std::vector<Value> wrt;
  for (const Value& operand : operands)
    if (differentiable(operand.dtype())) wrt.push_back(operand);
  if (std::holds_alternative<NotDifferentiable>(op.gradient) || !differentiable(y.dtype()) || wrt.empty())
    return builder.finish();
  const Value real = is_complex(y.dtype()) ? view_as_real(y) : y;
  const Value w = builder.argument(ops::input, "w", real.dtype(), real.shape());
  const Value weighed = mul(w, add(real, mul(mul(real, real), 0.5)));
  const Value loss = weighed.rank() == 0 ? weighed : sum(weighed);
  const auto found = gradients(builder, loss, std::nullopt, wrt, Unused::zeros).values;
  for (std::size_t i = 0; i < found.size(); ++i) builder.output(fmt::format("grad.{}", i), found[i]);
  return builder.finish();
}

/// The sample with its f64 operands in another float dtype; nothing where it has none.
std::optional<Sample> in_dtype(const Sample& sample, DType dtype) {
  Sample narrow = sample;
  bool floats = dtype == f64;
  for (SampleOperand& operand : narrow.operands) {
    if (is_complex(operand.dtype) && dtype != f64) return std::nullopt;
    if (operand.dtype != f64) continue;
    operand.dtype = dtype;
    floats = true;
  }
  return floats ? std::optional(narrow) : std::nullopt;
}

/// The sample with its operands in sizes that `sizes` gives for those above 1.
Sample resized(Sample sample, const std::function<std::int64_t(std::int64_t)>& sizes) {
  for (SampleOperand& operand : sample.operands) {
    const bool random_state = operand.dtype == i64 && operand.sizes == std::vector<std::int64_t>{2};
    for (std::int64_t& size : operand.sizes)
      if (size > 1 && !random_state) size = sizes(size);
  }
  return sample;
}

/// Values for the arguments of a sample's graph whose unknown dims n2, n3, ... are those of `sizes`.
Tensors sample_arguments(const Graph& graph, const Sample& sample, Layout layout, const DimBindings& sizes) {
  Tensors arguments = arguments_of(random_operands(sample), layout);
  if (const ValueId w = graph.find_argument("w"); w.valid()) {
    std::mt19937 generator(7);
    const TensorType& type = graph[w].type;
    arguments.emplace("w", random_tensor({type.shape.evaluate(sizes), type.dtype, 0.5, 1.5}, generator));
  }
  return arguments;
}

/// The graph of every sample in this dtype, with its gradients, where it can be built at all (tests/ops says which
/// may be refused).
template <class F>
int for_each_graph(DType dtype, const SampleOptions& options, F f) {
  int seen = 0;
  for_each_sample([&](const Op& op, const Sample& given, const std::string& what) {
    const auto sample = in_dtype(given, dtype);
    if (!sample) return;
    CAPTURE(what, name(dtype), options.layout, options.sizes);
    Graph graph;
    try {
      graph = graph_with_gradients(op, *sample, options);
    } catch (const UserError&) {
      return;
    }
    ++seen;
    f(graph, *sample);
  });
  return seen;
}

/// Compiles every sample's graph and compares it with the interpreter, which rounds as the dtype does.
void check_compiled(DType dtype, Layout layout, double tolerance, int at_least) {
  MemoryStore store;
  const int seen = for_each_graph(dtype, {.layout = layout}, [&](const Graph& graph, const Sample& sample) {
    const Tensors arguments = sample_arguments(graph, sample, layout, {});
    Executable executable = compile(graph, {.threads = 1, .cache = &store});
    check_close(executable.run(arguments), interpret(graph, arguments), tolerance);
  });
  CHECK(seen > at_least);
}

/// Runs by interpreter and by machine code; whether there was a result. (Where a gather copies nothing, the
/// interpreter alone looks at its indices.)
bool check_same_run(const Graph& graph, Executable& executable, const Tensors& arguments, double tolerance) {
  const Outcome expected = outcome([&] { return interpret(graph, arguments); });
  const Outcome found = outcome([&] { return executable.run(arguments); });
  const bool unread = found.label.empty() && found.results.at("y").numel() == 0 && expected.label == "index_range";
  if (!unread) check_same(found, expected, tolerance);
  return expected.label.empty();
}

/// The sizes of unknown dims that were a sample's sizes: a few more than a vector, one, none, what they were.
std::int64_t more(std::int64_t size) { return size == 2 ? 5 : size == 3 ? 17 : size + 16; }
std::int64_t one(std::int64_t) { return 1; }
std::int64_t none(std::int64_t) { return 0; }
std::int64_t same(std::int64_t size) { return size; }

void check_unknown_dims(DType dtype, Layout layout, double tolerance) {
  MemoryStore store;
  int runs = 0;
  for_each_graph(dtype, {.layout = layout, .sizes = Sizes::unknowns}, [&](const Graph& graph, const Sample& sample) {
    Executable executable = compile(graph, {.threads = 1, .cache = &store});
    for (const auto sizes : {more, one, none, same}) {
      const Sample other = resized(sample, sizes);
      DimBindings dims = unknown_sizes(sample);
      for (auto& [name, size] : dims) size = size > 1 ? sizes(size) : size;
      CAPTURE(sizes(3));
      Tensors arguments;
      try {
        arguments = sample_arguments(graph, other, layout, dims);
      } catch (const UserError&) {
        continue;  // a dim such as n3 - 2 that is negative now
      }
      runs += check_same_run(graph, executable, arguments, tolerance) ? 1 : 0;
    }
  });
  CHECK(runs > 1000);
}

}  // namespace

TEST_CASE("compiled ops in f64") { check_compiled(f64, Layout::contiguous, 1e-12, 500); }
TEST_CASE("compiled ops in f32") { check_compiled(f32, Layout::contiguous, 3e-6, 400); }
TEST_CASE("compiled ops in bf16") { check_compiled(bf16, Layout::contiguous, 1.6e-2, 400); }
TEST_CASE("compiled ops in f16") { check_compiled(f16, Layout::contiguous, 2e-3, 400); }
TEST_CASE("compiled ops of strided operands") { check_compiled(f64, Layout::strided, 1e-12, 500); }
TEST_CASE("compiled ops of unknown dims, bound several ways") { check_unknown_dims(f32, Layout::contiguous, 1e-5); }

TEST_CASE("kernels of every op stay inside their buffers and lean on no order of iterations") {
  int bits = 128;
  for (const Sizes sizes : {Sizes::numbers, Sizes::unknowns})
    for (const Layout layout : {Layout::contiguous, Layout::strided})
      for_each_graph(f64, {.layout = layout, .sizes = sizes}, [&](const Graph& graph, const Sample& sample) {
        bits = bits == 512 ? 128 : bits * 2;
        const Tensors arguments = sample_arguments(graph, sample, layout, unknown_sizes(sample));
        const ProgramInterpreter program(graph, {bits});
        check_close(program.run(arguments), interpret(graph, arguments), 1e-12);
      });
}

}  // namespace lathe::ir::test
