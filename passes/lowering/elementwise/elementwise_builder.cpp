#include "passes/lowering/elementwise/elementwise_builder.h"

#include <cmath>
#include <functional>

#include "ir/support/hash.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {

/// Equal instructions have equal hashes.
std::size_t hash_of(const ElementwiseInstruction& i) {
  std::size_t hash = mix_hash(static_cast<std::size_t>(i.kind), static_cast<std::size_t>(i.op));
  hash = mix_hash(hash, std::isnan(i.value.real()) ? 1 : std::hash<double>{}(i.value.real()));
  hash = mix_hash(hash, static_cast<std::size_t>(i.buffer.index));
  hash = mix_hash(hash, static_cast<std::size_t>(i.form.offset.value().value_or(0)));
  for (const int arg : i.args) hash = mix_hash(hash, static_cast<std::size_t>(arg));
  return hash;
}

}  // namespace

int ElementwiseBuilder::emit(ElementwiseInstruction instruction) {
  const std::size_t hash = hash_of(instruction);
  if (instruction.kind != Kind::column)
    for (auto [at, end] = known_.equal_range(hash); at != end; ++at)
      if (program_[at->second] == instruction) return at->second;
  known_.emplace(hash, program_.size());
  std::uint64_t depends = 0;
  for (std::size_t d = 0; d < instruction.form.coefficients.size(); ++d)
    if (!instruction.form.coefficients[d].is(0)) depends |= 1ULL << d;
  for (const int arg : instruction.args) depends |= program_.depends[arg];
  program_.code.push_back(std::move(instruction));
  program_.depends.push_back(depends);
  return program_.size() - 1;
}

int ElementwiseBuilder::constant(const Number& value, DType dtype) {
  return emit({.kind = Kind::constant, .dtype = dtype, .value = value.rounded_to(dtype)});
}

int ElementwiseBuilder::scalar(ScalarOp op, DType dtype, std::vector<int> args, ir::ValueId node) {
  return emit({.kind = Kind::scalar, .dtype = dtype, .op = op, .args = std::move(args), .node = node});
}

}  // namespace lathe
