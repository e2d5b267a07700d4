#include <catch2/catch.hpp>

#include "ir/support/tensors/complex_elements.h"
#include "passes/autodiff/autodiff.h"
#include "tests/ops/samples.h"

/// The gradient of every op, checked on the samples of its record.
namespace lathe::ir::test {

namespace {

bool differentiable(DType dtype) { return is_float(dtype) || is_complex(dtype); }

/// Returns complex values as pairs of reals.
Value as_real(const Value& a) { return is_complex(a.dtype()) ? view_as_real(a) : a; }

/// A differentiated sample. The loss is a non-linear function that weights the result's elements differently, so that
/// the gradient of the op's result also depends on the operands.
struct Differentiated {
  GraphBuilder builder{"gradients"};
  std::vector<Value> operands, wrt;
  std::vector<std::size_t> positions;  ///< operand index of each `wrt`
  std::vector<Value> first, second;    ///< gradients of the loss and of the slope
  std::vector<Value> loss, slope;      ///< one value each; the slope is the directional derivative <first,
                                       ///< directions>
  Tensors arguments;
  DimBindings dims;
};

/// Declares an input of the shape of `like`, with fixed numbers near 1.
Value weights(Differentiated& made, const std::string& name, const Value& like) {
  const Value real = as_real(like);
  const SampleOperand operand{real.shape().evaluate(made.dims), real.dtype(), 0.5, 1.5};
  std::mt19937 generator(7);
  made.arguments.insert_or_assign(name, random_tensor(operand, generator));
  return made.builder.argument(ops::input, name, real.dtype(), real.shape());
}

Value total(const Value& a) { return a.rank() == 0 ? a : sum(a); }

void differentiate_sample(Differentiated& made, const Op& op, const Sample& sample,
                          const SampleOptions& options = {}) {
  made.operands = sample_operands(made.builder, sample, options);
  made.dims = unknown_sizes(sample);
  const Value y = made.builder.add(op, made.operands, sample.attrs);
  const Value real = as_real(y), w = weights(made, "w", y);
  made.loss.push_back(total(mul(w, add(real, mul(mul(real, real), 0.5)))));
  for (std::size_t i = 0; i < made.operands.size(); ++i)
    if (differentiable(made.operands[i].dtype())) {
      made.wrt.push_back(made.operands[i]);
      made.positions.push_back(i);
    }
  made.first = gradients(made.builder, made.loss[0], std::nullopt, made.wrt, Unused::zeros).values;
}

void differentiate_again(Differentiated& made) {
  Value slope = constant(made.builder, 0, f64);
  for (std::size_t i = 0; i < made.first.size(); ++i) {
    const Value direction = weights(made, "v" + std::to_string(i), made.first[i]);
    slope = add(slope, total(mul(as_real(made.first[i]), direction)));
  }
  made.slope.push_back(slope);
  made.second = gradients(made.builder, slope, std::nullopt, made.wrt, Unused::zeros).values;
}

std::vector<HostTensor> run(const Differentiated& made, const std::vector<Value>& values, const Tensors& arguments) {
  std::vector<ValueId> ids;
  for (const Value& value : values) ids.push_back(value.id());
  return interpret_values(made.builder.graph(), arguments, ids);
}

/// Number of reals in a tensor: a complex element has two.
std::int64_t parts(const HostTensor& tensor) { return tensor.numel() * (is_complex(tensor.dtype()) ? 2 : 1); }
double get_part(const HostTensor& tensor, std::int64_t i) {
  if (!is_complex(tensor.dtype())) return tensor.get(i);
  const auto value = get_complex(tensor, i / 2);
  return i % 2 ? value.imag() : value.real();
}
void add_to_part(HostTensor& tensor, std::int64_t i, double step) {
  if (!is_complex(tensor.dtype())) return tensor.set(i, tensor.get(i) + step);
  set_complex(tensor, i / 2,
              get_complex(tensor, i / 2) + (i % 2 ? std::complex(0.0, step) : std::complex(step, 0.0)));
}

/// Compares the gradients with central differences of a scalar at every real of every operand: eps 1e-6, atol 1e-5,
/// rtol 1e-3.
void check_against_differences(const Differentiated& made, const std::vector<Value>& scalar,
                               const std::vector<Value>& gradients) {
  const auto found = run(made, gradients, made.arguments);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const std::string name = "x" + std::to_string(made.positions[k]);
    REQUIRE(found[k].shape() == made.arguments.at(name).shape());
    REQUIRE(found[k].dtype() == made.arguments.at(name).dtype());
    for (std::int64_t i = 0; i < parts(found[k]); ++i) {
      const auto at = [&](double step) {
        Tensors moved = made.arguments;
        add_to_part(moved.at(name), i, step);
        return run(made, scalar, moved)[0].get(0);
      };
      const double numeric = (at(1e-6) - at(-1e-6)) / 2e-6;
      CAPTURE(name, i);
      CHECK(get_part(found[k], i) == Approx(numeric).margin(1e-5).epsilon(1e-3));
    }
  }
}

/// Calls f for every sample with a gradient in f64.
template <class F>
void for_each_differentiable_sample(F f) {
  for_each_sample([&](const Op& op, const Sample& sample, const std::string& what) {
    const Graph graph = sample_graph(op, sample);
    const DType result = graph[graph.outputs[0].value].type.dtype;
    const auto fits = [](const SampleOperand& operand) {
      return !differentiable(operand.dtype) || operand.dtype == f64 || operand.dtype == c128;
    };
    const auto matters = [](const SampleOperand& operand) { return differentiable(operand.dtype); };
    if (std::holds_alternative<NotDifferentiable>(op.gradient) || (result != f64 && result != c128)) return;
    if (!std::all_of(sample.operands.begin(), sample.operands.end(), fits)) return;
    if (std::any_of(sample.operands.begin(), sample.operands.end(), matters)) f(op, sample, what);
  });
}

}  // namespace

TEST_CASE("first and second derivatives of every op agree with finite differences", "[gradients]") {
  std::map<std::string, int> seen;
  for_each_differentiable_sample([&](const Op& op, const Sample& sample, const std::string& what) {
    ++seen[std::string(op.name.value)];
    if (&op == &ops::straight_through) return;  // its gradient is that of another value: autodiff_test.cpp
    CAPTURE(what);
    Differentiated made;
    for (auto& [name, tensor] : arguments_of(random_operands(sample))) made.arguments.emplace(name, tensor);
    differentiate_sample(made, op, sample);
    check_against_differences(made, made.loss, made.first);
    differentiate_again(made);
    check_against_differences(made, made.slope, made.second);
  });
  // Every op with a gradient must have a sample for it.
  for (const Op* op : sampled_ops()) {
    CAPTURE(op->name.value);
    const bool shown = std::holds_alternative<NotDifferentiable>(op->gradient);
    CHECK((shown || seen[std::string(op->name.value)] > 0));
  }
}

TEST_CASE("gradients of strided operands and of unknown dims are the same", "[gradients]") {
  for (const SampleOptions& options : {SampleOptions{.layout = Layout::strided, .sizes = Sizes::numbers},
                                       SampleOptions{.layout = Layout::contiguous, .sizes = Sizes::unknowns}})
    for_each_differentiable_sample([&](const Op& op, const Sample& sample, const std::string& what) {
      CAPTURE(what, options.layout, options.sizes);
      const auto operands = random_operands(sample);
      Differentiated plain, other;
      plain.arguments = arguments_of(operands);
      other.arguments = arguments_of(operands, options.layout);
      differentiate_sample(plain, op, sample);
      try {
        (void)sample_graph(op, sample, options);
      } catch (const UserError&) {
        return;  // the all-ops test checks which ones may be rejected
      }
      differentiate_sample(other, op, sample, options);
      const auto expected = run(plain, plain.first, plain.arguments),
                 found = run(other, other.first, other.arguments);
      for (std::size_t k = 0; k < expected.size(); ++k) CHECK(distance(found[k], expected[k]) <= 1e-12);
    });
}

TEST_CASE("gradients in narrow floats have the dtype of the operands and match f64", "[gradients]") {
  for (const auto& [dtype, tolerance] : {std::pair{f32, 1e-4}, std::pair{bf16, 0.1}, std::pair{f16, 2e-2}})
    for_each_differentiable_sample(
        [&, dtype = dtype, tolerance = tolerance](const Op& op, const Sample& sample, const std::string& what) {
          const Graph graph = sample_graph(op, sample);
          if (op.as<Loop>()) return;  // its body has f64 values: tests/frontend/loops
          if (is_complex(graph[graph.outputs[0].value].type.dtype)) return;  // has no 16-bit type
          Sample narrow = sample;
          for (SampleOperand& operand : narrow.operands) {
            if (operand.dtype == c128) return;
            if (operand.dtype == f64) operand.dtype = dtype;
          }
          const auto attr = narrow.attrs.find("dtype");
          if (attr && std::get<DType>(*attr) == f64) narrow.attrs.set("dtype", dtype);
          CAPTURE(what, name(dtype));
          Differentiated made, exact;
          made.arguments = arguments_of(random_operands(narrow));
          differentiate_sample(made, op, narrow);
          for (const auto& [argument, tensor] : made.arguments)
            exact.arguments.emplace(argument, tensor.dtype() == dtype ? tensor.cast(f64) : tensor);
          const Tensors rounded = exact.arguments;
          differentiate_sample(exact, op, sample);
          const auto found = run(made, made.first, made.arguments), expected = run(exact, exact.first, rounded);
          for (std::size_t k = 0; k < found.size(); ++k) {
            CHECK(found[k].dtype() == dtype);
            double largest = 1;
            for (std::int64_t i = 0; i < expected[k].numel(); ++i)
              largest = std::max(largest, std::fabs(expected[k].get(i)));
            for (std::int64_t i = 0; i < found[k].numel(); ++i)
              CHECK(found[k].get(i) == Approx(expected[k].get(i)).margin(tolerance * largest));
          }
        });
}

}  // namespace lathe::ir::test
