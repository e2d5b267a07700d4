#include <catch2/catch.hpp>
#include <set>

#include "ir/tensor/text/parser.h"
#include "ir/tensor/verifier.h"
#include "tests/ops/samples.h"
#include "tests/support/graphs/same_graph.h"

/// Properties of every op, checked on the samples of its record.
namespace lathe::ir::test {

namespace {

HostTensor value_of(const Graph& graph, const Tensors& arguments) { return interpret(graph, arguments).at("y"); }

/// Whether an operand or the result has a dim of this size.
bool has_size(const Op& op, const Sample& sample, std::int64_t size) {
  const auto has = [&](const std::vector<std::int64_t>& sizes) {
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  const Graph graph = sample_graph(op, sample);
  return has(graph[graph.outputs[0].value].type.shape.evaluate({})) ||
         std::any_of(sample.operands.begin(), sample.operands.end(),
                     [&](const SampleOperand& operand) { return has(operand.sizes); });
}

/// Whether dtype and sizes are equal, and strides too, except where they have no effect.
bool same_type(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  return a.strides == b.strides || (a.is_contiguous() && b.is_contiguous());
}

/// Whether the op rejects the sample once its sizes are symbolic, for a reason that depends on sizes: half of a
/// symbolic dim, a dim that is the remainder of another one, strides of a merged dim, a kernel without a size.
bool undecidable(const Op& op, const Sample& sample) {
  static const std::set<std::pair<std::string_view, std::string>> reasons = {{"dequantize", "dequantize_scales"},
                                                                             {"rope", "rope_even"},
                                                                             {"conv", "conv_weight"},
                                                                             {"conv", "conv_channels"},
                                                                             {"conv", "conv_size"},
                                                                             {"unfold", "unfold_step"},
                                                                             {"view", "view_stride"},
                                                                             {"view", "view_infer"},
                                                                             {"reshape", "view_infer"},
                                                                             {"view_as_complex", "complex_pair"}};
  try {
    (void)sample_graph(op, sample, {.layout = Layout::contiguous, .sizes = Sizes::unknowns});
  } catch (const UserError& error) {
    CAPTURE(error.what());
    CHECK(reasons.count({op.name.value, error.label()}) == 1);
    return true;
  }
  return false;
}

/// Expands a value's composite once; its own operands are unchanged.
Value expand_once(GraphBuilder& builder, const Value& value) {
  std::vector<Value> operands;
  for (const ValueId id : value.node().operands) operands.emplace_back(builder, id);
  return value.node().op->as<Composite>()->expand(builder, value.node(), operands);
}

}  // namespace

TEST_CASE("every op has samples, including dims of size 0 and 1") {
  for (const Op* op : sampled_ops()) {
    CAPTURE(op->name.value);
    const auto samples = samples_of(*op);
    REQUIRE(!samples.empty());
    if (op->arity.value.max == 0 || op == &ops::random_uniform) continue;
    const auto with = [&](std::int64_t size) {
      return std::any_of(samples.begin(), samples.end(), [&](const Sample& s) { return has_size(*op, s, size); });
    };
    CHECK(with(0));
    CHECK(with(1));
  }
}

TEST_CASE("the value of every op has the type of its rule") {
  for_each_sample([](const Op& op, const Sample& sample, const std::string& what) {
    CAPTURE(what);
    const Graph graph = sample_graph(op, sample);
    verify(graph);
    const TensorType& type = graph[graph.outputs[0].value].type;
    const HostTensor value = value_of(graph, arguments_of(random_operands(sample)));
    CHECK(value.dtype() == type.dtype);
    CHECK(value.shape() == type.shape.evaluate({}));
  });
}

TEST_CASE("the expansion of every composite has the type of its rule") {
  for (const Sizes sizes : {Sizes::numbers, Sizes::unknowns})
    for (const Layout layout : {Layout::contiguous, Layout::strided})
      for_each_sample([&](const Op& op, const Sample& sample, const std::string& what) {
        if (!op.as<Composite>()) return;
        CAPTURE(what, sizes, layout);
        GraphBuilder builder("sample");
        const auto operands = sample_operands(builder, sample, {layout, sizes});
        if (sizes == Sizes::unknowns && undecidable(op, sample)) return;
        const Value value = builder.add(op, operands, sample.attrs);
        const Value expansion = expand_once(builder, value);
        CHECK(same_type(expansion.type(), value.type()));
        CHECK(expansion.node().op != &op);
      });
}

TEST_CASE("strided operands give the same values") {
  int seen = 0, refused = 0;
  for_each_sample([&](const Op& op, const Sample& sample, const std::string& what) {
    CAPTURE(what);
    const auto operands = random_operands(sample);
    const HostTensor plain = value_of(sample_graph(op, sample), arguments_of(operands));
    Graph graph;
    try {
      graph = sample_graph(op, sample, {.layout = Layout::strided, .sizes = Sizes::numbers});
    } catch (const UserError& error) {
      CHECK(error.label() == "view_stride");
      CHECK(&op == &ops::view);
      ++refused;
      return;
    }
    verify(graph);
    CHECK(value_of(graph, arguments_of(operands, Layout::strided)).same_bits(plain));
    ++seen;
  });
  CHECK(seen > 300);
  CHECK(refused > 0);
}

TEST_CASE("unknown dims give the same values once they are bound") {
  int seen = 0;
  for_each_sample([&](const Op& op, const Sample& sample, const std::string& what) {
    if (sample.operands.empty() || undecidable(op, sample)) return;
    CAPTURE(what);
    const auto operands = random_operands(sample);
    const HostTensor plain = value_of(sample_graph(op, sample), arguments_of(operands));
    const Graph graph = sample_graph(op, sample, {.layout = Layout::contiguous, .sizes = Sizes::unknowns});
    verify(graph);
    CHECK(distance(value_of(graph, arguments_of(operands)), plain) <= 1e-15);
    ++seen;
  });
  CHECK(seen > 300);
}

TEST_CASE("every op prints and parses back") {
  for (const Sizes sizes : {Sizes::numbers, Sizes::unknowns})
    for_each_sample([&](const Op& op, const Sample& sample, const std::string& what) {
      CAPTURE(what, sizes);
      Graph graph;
      try {
        graph = sample_graph(op, sample, {.layout = Layout::strided, .sizes = sizes});
      } catch (const UserError&) {
        return;  // the two tests above check which ones may be rejected
      }
      const std::string text = print(graph);
      const Graph again = parse_graph(text, OpSet{own_op()});
      CHECK(print(again) == text);
      lathe::test::check_same_graph(graph, again, {.locations = true, .names = true});
    });
}

TEST_CASE("16-bit floats match f64 rounded") {
  for (const auto& [dtype, tolerance] : {std::pair{f32, 1e-6}, std::pair{f16, 4e-3}, std::pair{bf16, 3e-2}})
    for_each_sample(
        [&, dtype = dtype, tolerance = tolerance](const Op& op, const Sample& sample, const std::string& what) {
          if (op.as<Loop>()) return;  // its body has f64 values: tests/frontend/loops
          Sample narrow = sample;
          bool floats = false;
          for (SampleOperand& operand : narrow.operands)
            if (operand.dtype == f64) {
              operand.dtype = dtype;
              floats = true;
            }
          const Graph wide_graph = sample_graph(op, sample);
          const DType result = wide_graph[wide_graph.outputs[0].value].type.dtype;
          if (!floats || is_complex(result) || &op == &ops::cast) return;
          CAPTURE(what, name(dtype));
          const auto operands = random_operands(narrow);
          std::vector<HostTensor> wide;
          for (const HostTensor& operand : operands)
            wide.push_back(operand.dtype() == dtype ? operand.cast(f64) : operand);
          const HostTensor expected = value_of(wide_graph, arguments_of(wide));
          const HostTensor found = value_of(sample_graph(op, narrow), arguments_of(operands));
          REQUIRE(found.dtype() == (result == f64 ? dtype : result));
          double largest = 1;
          for (std::int64_t i = 0; i < expected.numel(); ++i)
            if (std::isfinite(expected.get(i))) largest = std::max(largest, std::fabs(expected.get(i)));
          for (std::int64_t i = 0; i < found.numel(); ++i) {
            const double a = found.get(i), b = expected.get(i);
            const bool same = a == b || (std::isnan(a) && std::isnan(b));
            CHECK((same || std::fabs(a - b) <= tolerance * largest));
          }
        });
}

}  // namespace lathe::ir::test
