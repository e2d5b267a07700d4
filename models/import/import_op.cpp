#include <algorithm>

#include "ir/tensor/interpret/interpreter.h"
#include "models/import/op_table.h"
#include "passes/transforms/recognize/recognize.h"

namespace lathe::importing {

namespace {

/// Builds the op in a graph of its own and interprets it. Returns nothing if its results are not small.
std::optional<Results> computed(const OpRecord& record, const OpCall& call, std::vector<Value> operands) {
  const Graph scratch("import");
  const ir::GraphBuilder::At line(scratch.builder(), call.node().location);
  const OpCall local(call.node(), std::move(operands), scratch);
  Results results = record.build(local);
  local.require_all_read();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_absent() || results[i].constant()) continue;
    const Dim count = results[i].shape().numel();
    if (!count.value() || *count.value() > most_elements) return std::nullopt;
    scratch.output(std::to_string(i), results[i].in(scratch));
  }
  const Tensors numbers = ir::interpret(scratch.finish(), {});
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const auto found = numbers.find(std::to_string(i)); found != numbers.end())
      results[i] = Value::constant(found->second);
  return results;
}

bool all_known(const OpCall& call, const auto& is_known) {
  return std::ranges::all_of(call.operands(),
                             [&](const Value& operand) { return operand.is_absent() || is_known(operand); });
}

std::optional<Results> computed_from_constants(const OpRecord& record, const OpCall& call) {
  std::int64_t elements = 0;
  const bool are_constants = all_known(call, [&](const Value& operand) {
    if (operand.constant()) elements += operand.constant()->numel();
    return operand.constant() != nullptr && !is_complex(operand.dtype());
  });
  // A body may read values of the graph around its node.
  if (!are_constants || elements > most_elements || call.count() == 0 || !call.node().bodies.empty())
    return std::nullopt;
  // The values of the call would keep tensors of the other graph.
  std::vector<Value> operands;
  for (const Value& operand : call.operands())
    operands.push_back(operand.is_absent() ? Value() : Value::constant(*operand.constant()));
  return computed(record, call, std::move(operands));
}

bool is_moved(Moves moves, std::size_t operand) {
  switch (moves) {
    case Moves::none: return false;
    case Moves::first: return operand == 0;
    case Moves::all: return true;
    case Moves::branches: return operand == 1 || operand == 2;
  }
  return false;
}

/// Numbers the elements of all moved operands, lets the op move the numbers, and returns the elements at them.
std::optional<Results> moved(const OpRecord& record, const OpCall& call) {
  std::vector<Dim> elements;
  std::vector<Value> operands;
  std::optional<DType> dtype;
  for (std::size_t i = 0; i < call.count(); ++i) {
    const Value& operand = call.operands()[i];
    if (operand.is_absent()) {
      operands.emplace_back();
    } else if (is_moved(record.moves, i)) {
      const std::optional<DimTensor> dims = operand.dims();
      if (!dims) return std::nullopt;
      HostTensor numbers(i64, dims->shape);
      for (std::int64_t k = 0; k < numbers.numel(); ++k)
        numbers.set_int(k, k + static_cast<std::int64_t>(elements.size()));
      elements.insert(elements.end(), dims->elements.begin(), dims->elements.end());
      operands.push_back(Value::constant(std::move(numbers)));
      dtype = dims->dtype;
    } else {
      if (!operand.constant()) return std::nullopt;
      operands.push_back(Value::constant(*operand.constant()));
    }
  }
  if (!dtype) return std::nullopt;
  std::optional<Results> results = computed(record, call, std::move(operands));
  if (!results) return std::nullopt;
  for (Value& result : *results) {
    if (result.is_absent()) continue;
    DimTensor dims{*dtype, result.constant()->shape(), {}};
    for (const std::int64_t k : result.constant()->values<std::int64_t>())
      dims.elements.push_back(elements[static_cast<std::size_t>(k)]);
    result = Value(std::move(dims));
  }
  return results;
}

/// Replaces a result that is the last op of a formula, such as that of a norm, by the op of that name. The other ops
/// of the formula are left without readers, unless the model uses their values.
void recognize(Results& results) {
  for (Value& result : results) {
    const Tensor* const tensor = result.computed();
    if (!tensor) continue;
    const ir::Value value = tensor->value();
    const ir::Node node = value.node();  // a copy, because new ops move the nodes
    std::vector<ir::Value> operands;
    for (const ir::ValueId id : node.operands) operands.emplace_back(value.builder(), id);
    if (const auto found = ir::recognized(node, operands)) result = Tensor(*found);
  }
}

/// Records the multiple that a dim must be so that a quotient of sizes is known at import, for results that are
/// computed at run time: the quotient, and all values that are computed from it.
void note_multiples(const OpCall& call, Results& results) {
  std::optional<NeededMultiple> needed = call.needed_multiple();
  for (std::size_t i = 0; i < call.count() && !needed; ++i) needed = call.operands()[i].needed_multiple();
  if (!needed) return;
  for (Value& result : results)
    if (result.computed()) result.set_needed_multiple(*needed);
}

}  // namespace

Results import_op(const OpRecord& record, const OpCall& call) {
  if (auto results = computed_from_constants(record, call)) return *std::move(results);
  if (record.moves != Moves::none)
    if (auto results = moved(record, call)) return *std::move(results);
  if (record.fold && all_known(call, [](const Value& operand) { return operand.dims().has_value(); }))
    if (auto result = record.fold(call)) {
      call.require_all_read();
      return {Value(*std::move(result))};
    }
  const ir::GraphBuilder::At line(call.graph().builder(), call.node().location);
  Results results = record.build(call);
  call.require_all_read();
  recognize(results);
  note_multiples(call, results);
  return results;
}

}  // namespace lathe::importing
