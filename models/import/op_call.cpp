#include "models/import/op_call.h"

#include <fmt/core.h>

#include <array>

#include "frontend/ops/ops.h"
#include "ir/support/error.h"

namespace lathe::importing {

namespace {

template <class T>
SourceAttribute sample() {
  return T();
}

}  // namespace

std::string_view kind_name(const SourceAttribute& attribute) {
  static constexpr std::array<std::string_view, 7> names{
      "an integer", "a number", "a text", "a list of integers", "a list of numbers", "a list of texts", "a tensor"};
  return names.at(attribute.index());
}

void OpCall::fail(std::string_view message, std::string_view label, std::string_view hint) const {
  throw UserError(node_.location, node_.op, message, label, hint);
}

void OpCall::note_division(const Dim& a, const Dim& b) const {
  if (!needed_ && b.value()) needed_ = importing::needed_multiple(a, *b.value());
}

void OpCall::fail_size(std::string_view message, const std::optional<NeededMultiple>& needed,
                       std::string_view hint) const {
  throw_size_error(UserError(node_.location, node_.op, message, "import_size", hint), needed);
}

const Value& OpCall::operand(std::size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i), "import_operand", "the op requires it");
  return operands_[i];
}

std::vector<Value> OpCall::group(std::size_t i) const {
  std::size_t first = 0;
  for (std::size_t k = 0; k < i && k < node_.groups.size(); ++k) first += node_.groups[k];
  std::vector<Value> all;
  for (std::size_t k = first; i < node_.groups.size() && k < first + node_.groups[i]; ++k) all.push_back(operand(k));
  return all;
}

std::vector<Tensor> OpCall::tensors() const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < count(); ++i) all.push_back(tensor(i));
  return all;
}

const HostTensor& OpCall::numbers(std::size_t i, std::string_view name) const {
  const HostTensor* const found = operand(i).numbers();
  if (!found)
    fail(fmt::format("{} is computed at run time", name), "import_size",
         "it must be a constant, or follow from constants and sizes");
  return *found;
}

std::vector<Dim> OpCall::dims(std::size_t i, std::string_view name) const {
  std::optional<DimTensor> found = operand(i).dims();
  if (!found)
    fail_size(fmt::format("{} depends on values that are computed at run time", name), operand(i).needed_multiple(),
              "sizes must follow from constants and from the sizes of inputs; the latter can be fixed with --fix-dim "
              "NAME=SIZE or ImportOptions::sizes");
  return std::move(found->elements);
}

std::vector<std::int64_t> OpCall::integers(std::size_t i, std::string_view name) const {
  std::vector<std::int64_t> all;
  for (const Dim& dim : dims(i, name)) {
    if (!dim.value())
      fail(fmt::format("{} depends on the size {}", name, dim.to_string()), "import_size",
           "it must be a number: fix the size with --fix-dim NAME=SIZE or ImportOptions::sizes");
    all.push_back(*dim.value());
  }
  return all;
}

std::int64_t OpCall::integer(std::size_t i, std::string_view name) const {
  const std::vector<std::int64_t> all = integers(i, name);
  if (all.size() != 1) fail(fmt::format("{} has {} elements, not 1", name, all.size()), "import_operand");
  return all[0];
}

const SourceAttribute* OpCall::attribute_of(std::string_view name) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  read_.insert(found->first);
  return &found->second;
}

template <class T>
const T& OpCall::read(std::string_view name) const {
  const SourceAttribute* const found = attribute_of(name);
  if (!found) fail(fmt::format("the attribute {} is missing", name), "import_attribute", "the op requires it");
  const T* const value = std::get_if<T>(found);
  if (!value)
    fail(fmt::format("the attribute {} is {}, not {}", name, kind_name(*found), kind_name(sample<T>())),
         "import_attribute");
  return *value;
}

std::int64_t OpCall::integer(std::string_view attribute) const { return read<std::int64_t>(attribute); }

std::int64_t OpCall::integer(std::string_view attribute, std::int64_t fallback) const {
  return has(attribute) ? integer(attribute) : fallback;
}

bool OpCall::flag(std::string_view attribute, bool fallback) const {
  const std::int64_t value = integer(attribute, fallback ? 1 : 0);
  if (value != 0 && value != 1)
    fail(fmt::format("the attribute {} is {}, not 0 or 1", attribute, value), "import_attribute");
  return value == 1;
}

double OpCall::real(std::string_view attribute) const { return read<double>(attribute); }

double OpCall::real(std::string_view attribute, double fallback) const {
  return has(attribute) ? real(attribute) : fallback;
}

std::string OpCall::text(std::string_view attribute, std::string_view fallback) const {
  return has(attribute) ? read<std::string>(attribute) : std::string(fallback);
}

std::vector<std::int64_t> OpCall::integers(std::string_view attribute) const {
  return read<std::vector<std::int64_t>>(attribute);
}

std::vector<std::int64_t> OpCall::integers(std::string_view attribute, std::vector<std::int64_t> fallback) const {
  return has(attribute) ? integers(attribute) : std::move(fallback);
}

Results OpCall::run_body(std::string_view attribute, std::vector<Value> inputs, const Graph& graph) const {
  const auto found = node_.bodies.find(attribute);
  if (found == node_.bodies.end())
    fail(fmt::format("the attribute {} is missing", attribute), "import_attribute", "the op requires it");
  return found->second(std::move(inputs), graph);
}

bool OpCall::is_kept(std::size_t i) const {
  return node_.past_rows && has(i) && node_.past_rows->contains(tensor(i));
}

Tensor OpCall::joined(std::size_t i, const Tensor& rows, int dim) const {
  const Tensor past = tensor(i);
  if (node_.past_rows)
    if (const std::optional<Tensor> all = node_.past_rows->join(past, rows, dim)) return *all;
  return concat({past, rows}, dim);
}

void OpCall::ignore(std::initializer_list<std::string_view> attributes) const {
  for (const std::string_view name : attributes) (void)attribute_of(name);
}

void OpCall::require_all_read() const {
  for (const auto& [name, value] : node_.attributes)
    if (!read_.contains(name))
      fail(fmt::format("the attribute {} is not supported with these operands", name), "import_attribute");
}

int OpCall::axis(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    fail(fmt::format("axis {} is out of range for rank {}", axis, rank), "import_attribute");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace lathe::importing
