#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/elementwise_functions.h"

namespace lathe::onnx {

namespace {

/// Functions of one operand and no attributes, as records of one line each.
template <Tensor (*function)(const Tensor&, Where)>
Results unary(const OpCall& call) {
  return {function(call.tensor(0), Where::current())};
}

Results reciprocal_op(const OpCall& call) { return {reciprocal(call.tensor(0))}; }

/// Functions that Lathe has no op for.
template <Tensor (*function)(const Tensor&)>
Results composed(const OpCall& call) {
  return {function(call.tensor(0))};
}

}  // namespace

std::span<const OpRecord> function_ops() {
  static constexpr OpRecord records[] = {
      {"Exp", 6, latest, "", unary<exp>},
      {"Log", 6, latest, "", unary<log>},
      {"Sqrt", 6, latest, "", unary<sqrt>},
      {"Reciprocal", 6, latest, "", reciprocal_op},
      {"Erf", 9, latest, "", unary<erf>},
      {"Floor", 6, latest, "", unary<floor>},
      {"Ceil", 6, latest, "", unary<ceil>},
      {"Round", 11, latest, "", unary<round>},
      {"Sin", 7, latest, "", unary<sin>},
      {"Cos", 7, latest, "", unary<cos>},
      {"Tan", 7, latest, "", composed<importing::tan>},
      {"Sinh", 9, latest, "", composed<importing::sinh>},
      {"Cosh", 9, latest, "", composed<importing::cosh>},
      {"Asinh", 9, latest, "", composed<importing::asinh>},
      {"Acosh", 9, latest, "", composed<importing::acosh>},
      {"Atanh", 9, latest, "", composed<importing::atanh>},
      {"Atan", 7, latest, "", composed<importing::atan>},
      {"Asin", 7, latest, "", composed<importing::asin>},
      {"Acos", 7, latest, "", composed<importing::acos>},
      {"Tanh", 6, latest, "", unary<tanh>},
  };
  return records;
}

}  // namespace lathe::onnx
