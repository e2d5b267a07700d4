#include "frontend/ops/check_custom_op.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "frontend/graph.h"
#include "ir/ops/functional/functional.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "passes/autodiff/autodiff.h"

namespace lathe {

namespace {

HostTensor drawn(const ir::SampleOperand& operand, std::mt19937& generator) {
  HostTensor tensor(operand.dtype, operand.sizes);
  std::uniform_real_distribution<double> real(operand.low, operand.high);
  std::uniform_int_distribution<std::int64_t> whole(static_cast<std::int64_t>(std::ceil(operand.low)),
                                                    static_cast<std::int64_t>(std::floor(operand.high)));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    if (is_complex(operand.dtype))
      set_complex(tensor, i, {real(generator), real(generator)});
    else if (is_float(operand.dtype))
      tensor.set(i, real(generator));
    else
      tensor.set_int(i, whole(generator));
  }
  return tensor;
}

std::string input_name(std::size_t i) { return fmt::format("x{}", i); }

/// Checks of one sample.
class Trial {
 public:
  Trial(const CustomOp& op, const ir::Sample& sample, std::string what, unsigned seed, const Where& at)
      : op_(op), sample_(sample), what_(std::move(what)), at_(at) {
    std::mt19937 generator(seed);
    for (const ir::SampleOperand& operand : sample.operands)
      arguments_.insert_or_assign(input_name(arguments_.size()), drawn(operand, generator));
  }

  void check_value() const {
    const Graph g = use(false);
    const ir::Node& node = g.ir()[g.ir().outputs[0].value];
    const ir::TensorType& type = node.type;
    const HostTensor value = value_of(g, arguments_);
    if (value.shape() != type.shape.evaluate({})) fail("the value has another shape than " + type.to_string());
    if (op_.definition().reference) compare(value, reference(node.attrs), "the forward", "the reference");
    compare(value_of(use(true), arguments_), value, "with operands of other strides the forward", "it");
  }

  void check_text() const {
    const std::string text = ir::print(use(false).finish());
    const std::string again = ir::print(ir::parse_graph(text, ir::OpSet{op_}));
    if (again != text) fail(fmt::format("its text is read back as another graph:\n{}\n{}", text, again));
  }

  /// Checks the derivative of sum(w * (y + y*y / 2)), which depends on y, and then that of the directional
  /// derivative.
  void check_gradients() {
    const Graph g{"check"};
    const std::vector<Tensor> operands = inputs(g, false);
    std::vector<Tensor> wrt;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].dtype() == f64) {
        wrt.push_back(operands[i]);
        positions.push_back(i);
      }
    const Tensor y = op_(operands, sample_.attrs, at_);
    if (wrt.empty() || y.dtype() != f64 || !op_.definition().not_differentiable.empty()) return;
    const Tensor loss = (weights(g, "w", y) * (y + y * y * 0.5)).sum();
    const std::vector<Tensor> first = gradients(loss, wrt);
    Tensor derivative = g.constant(0, f64);
    for (std::size_t i = 0; i < wrt.size(); ++i)
      derivative = derivative + (first[i] * weights(g, fmt::format("v{}", i), first[i])).sum();
    compare_with_differences(g, loss, first, positions, "the gradient");
    compare_with_differences(g, derivative, gradients(derivative, wrt), positions, "the second derivative");
  }

 private:
  [[noreturn]] void fail(std::string_view fault) const {
    throw UserError(Location(at_), op_.definition().name, fmt::format("{}: {}", what_, fault), "op_check",
                    "the samples are those of check_custom_op(), or of the record");
  }

  /// Declares the operands; with `strided`, the last two dims of each have swapped strides.
  std::vector<Tensor> inputs(const Graph& g, bool strided) const {
    std::vector<Tensor> operands;
    for (const ir::SampleOperand& operand : sample_.operands) {
      const Shape shape(std::vector<Dim>(operand.sizes.begin(), operand.sizes.end()));
      const Tensor x = g.input(input_name(operands.size()), operand.dtype, shape, at_);
      const bool turn = strided && x.rank() >= 2;
      operands.push_back(turn ? x.transpose(-2, -1).contiguous().transpose(-2, -1) : x);
    }
    return operands;
  }

  Graph use(bool strided) const {
    Graph g{"check"};
    g.output("y", op_(inputs(g, strided), sample_.attrs, at_));
    return g;
  }

  static HostTensor value_of(const Graph& g, const Tensors& arguments) {
    return ir::interpret(g.ir(), arguments, {.round = false}).at("y");
  }

  HostTensor reference(const ir::Attributes& attrs) const {
    std::vector<HostTensor> operands;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const HostTensor& given = arguments_.at(input_name(i));
      const DType dtype = given.dtype();
      operands.push_back(is_float(dtype) ? given.cast(f64) : dtype == i32 ? given.cast(i64) : given);
    }
    return op_.definition().reference(operands, attrs);
  }

  /// Compares in f64 with a tolerance of 1e-9, relative to elements larger than 1.
  void compare(const HostTensor& found, const HostTensor& expected, std::string_view one,
               std::string_view other) const {
    if (found.shape() != expected.shape())
      fail(fmt::format("{} has the shape {}, {} {}", one, shape_to_string(found.shape()), other,
                       shape_to_string(expected.shape())));
    if (!is_float(found.dtype())) {
      if (!found.same_bits(expected)) fail(fmt::format("{} and {} differ", one, other));
      return;
    }
    for (std::int64_t i = 0; i < found.numel(); ++i) {
      const double a = found.get(i), b = expected.get(i);
      if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)))
        continue;
      fail(fmt::format("{} gives {} at element {}, {} {}", one, a, i, other, b));
    }
  }

  /// Declares an input of the type of `like`, with values near 1.
  Tensor weights(const Graph& g, const std::string& name, const Tensor& like) {
    std::mt19937 generator(7);
    const std::vector<std::int64_t> sizes = like.shape().evaluate({});
    arguments_.insert_or_assign(name, drawn({sizes, f64, 0.5, 1.5}, generator));
    return g.input(name, f64, like.shape(), at_);
  }

  static std::vector<Tensor> gradients(const Tensor& of, const std::vector<Tensor>& wrt) {
    std::vector<ir::Value> values;
    for (const Tensor& t : wrt) values.push_back(t.value());
    const auto found = ir::gradients(of.builder(), of.value(), {}, values, ir::Unused::zeros).values;
    return {found.begin(), found.end()};
  }

  /// Compares with central differences at every element of every operand: eps 1e-6, atol 1e-5, rtol 1e-3.
  void compare_with_differences(const Graph& g, const Tensor& scalar, const std::vector<Tensor>& gradients,
                                const std::vector<std::size_t>& positions, std::string_view what) const {
    const auto run = [&](const Tensor& value, const Tensors& arguments) {
      const ir::ValueId id = value.value().id();
      return ir::interpret_values(g.ir(), arguments, {&id, 1}).front();
    };
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const HostTensor found = run(gradients[k], arguments_);
      for (std::int64_t i = 0; i < found.numel(); ++i) {
        const auto at = [&](double step) {
          Tensors moved = arguments_;
          HostTensor& operand = moved.at(input_name(positions[k]));
          operand.set(i, operand.get(i) + step);
          return run(scalar, moved).get(0);
        };
        const double expected = (at(1e-6) - at(-1e-6)) / 2e-6;
        if (!(std::abs(found.get(i) - expected) <= 1e-5 + 1e-3 * std::abs(expected)))
          fail(fmt::format("{} by operand {}, element {}, is {}, by central differences {}", what, positions[k] + 1,
                           i, found.get(i), expected));
      }
    }
  }

  const CustomOp& op_;
  const ir::Sample& sample_;
  std::string what_;
  Where at_;
  Tensors arguments_;
};

}  // namespace

void check_custom_op(const CustomOp& op, std::vector<ir::Sample> samples, const CustomOpChecks& checks, Where at) {
  if (samples.empty()) samples = op.definition().samples;
  if (samples.empty())
    throw UserError(Location(at), op.definition().name, "there are no samples to check it on", "op_check",
                    "give some to check_custom_op(), or to the record");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Trial trial(op, samples[i], fmt::format("sample {}", i + 1), checks.seed, at);
    trial.check_value();
    trial.check_text();
    if (checks.gradients) trial.check_gradients();
  }
}

}  // namespace lathe
