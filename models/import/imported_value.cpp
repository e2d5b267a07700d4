#include "models/import/imported_value.h"

#include "frontend/ops/plain_ops.h"
#include "ir/support/error.h"

namespace lathe::importing {

struct Value::State {
  std::optional<Tensor> tensor = {};
  std::optional<HostTensor> numbers = {};
  std::optional<DimTensor> dims = {};    ///< if not all of them are numbers
  std::function<Tensor()> declare = {};  ///< of a parameter or state
  std::optional<NeededMultiple> needed = {};
};

Value::Value(const Tensor& tensor) : state_(std::make_shared<State>(State{.tensor = tensor})) {}

Value::Value(DimTensor dims) {
  if (std::optional<HostTensor> numbers = dims.numbers())
    state_ = std::make_shared<State>(State{.numbers = std::move(numbers)});
  else
    state_ = std::make_shared<State>(State{.dims = std::move(dims)});
}

Value Value::constant(HostTensor numbers) {
  return Value(std::make_shared<State>(State{.numbers = std::move(numbers)}));
}

Value Value::stored(HostTensor numbers, std::function<Tensor()> declare) {
  return Value(std::make_shared<State>(State{.numbers = std::move(numbers), .declare = std::move(declare)}));
}

DType Value::dtype() const {
  if (state_->numbers) return state_->numbers->dtype();
  return state_->dims ? state_->dims->dtype : state_->tensor->dtype();
}

Shape Value::shape() const {
  if (!state_->numbers && !state_->dims) return state_->tensor->shape();
  const std::vector<std::int64_t>& sizes = state_->numbers ? state_->numbers->shape() : state_->dims->shape;
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}

const Tensor* Value::computed() const {
  return state_ && state_->tensor && !state_->numbers && !state_->dims ? &*state_->tensor : nullptr;
}

const HostTensor* Value::constant() const { return state_ && !state_->declare ? numbers() : nullptr; }

const HostTensor* Value::numbers() const { return state_ && state_->numbers ? &*state_->numbers : nullptr; }

std::optional<DimTensor> Value::dims() const {
  if (!state_) return std::nullopt;
  if (state_->dims) return state_->dims;
  return state_->numbers ? dim_tensor(*state_->numbers) : std::nullopt;
}

Tensor Value::in(const Graph& graph) const {
  const bool is_known = (state_->numbers && !state_->declare) || state_->dims;
  // A tensor of the body of a loop has no meaning outside of it.
  if (!state_->tensor || (is_known && &state_->tensor->builder() != &graph.builder()))
    state_->tensor = state_->declare   ? state_->declare()
                     : state_->numbers ? literal(graph, *state_->numbers)
                                       : state_->dims->in(graph);
  return *state_->tensor;
}

std::optional<NeededMultiple> Value::needed_multiple() const { return state_ ? state_->needed : std::nullopt; }

void Value::set_needed_multiple(const NeededMultiple& needed) { state_->needed = needed; }

Tensor literal(const Graph& graph, const HostTensor& numbers) {
  const Shape shape(std::vector<Dim>(numbers.shape().begin(), numbers.shape().end()));
  if (is_complex(numbers.dtype()))
    throw UserError("constants of complex numbers are not imported", "import_dtype",
                    "use pairs of real numbers in the model");
  if (numbers.numel() == 0) return graph.zeros(shape, numbers.dtype());
  NumberList list;
  bool are_equal = true;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) {
    list.push_back(numbers.get_number(i));
    are_equal = are_equal && list[0] == list[static_cast<std::size_t>(i)];
  }
  // Zeros of floats may have different signs.
  if (are_equal && (list[0] != Number(0) || !is_float(numbers.dtype())))
    return graph.full(shape, list[0], numbers.dtype());
  return graph.literal(shape, std::move(list), numbers.dtype());
}

}  // namespace lathe::importing
