#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "models/import/fixed_input.h"
#include "models/import/pt2/program_importer.h"
#include "models/import/pt2/sizes/size_guards.h"
#include "models/import/stored/kept_tensor.h"

/// The inputs and outputs of a program, and the conditions on their sizes.
namespace lathe::pt2 {

using importing::Kept;
using importing::Value;

namespace {

bool is_user(const OutputSpec& output) {
  return output.kind == OutputSpec::Kind::user || output.kind == OutputSpec::Kind::loss;
}

}  // namespace

void ProgramImporter::add_inputs(Values& values) {
  for (const InputSpec& input : program_.inputs) {
    if (input.kind == InputSpec::Kind::user)
      add_user_input(values, input.value);
    else if (input.kind != InputSpec::Kind::fixed)
      define(values, input.value.text, stored(input));
  }
  for (const auto& [name, value] : options_.inputs)
    if (std::ranges::none_of(program_.inputs, [&](const InputSpec& input) {
          return input.kind == InputSpec::Kind::user && input.value.text == name;
        }))
      throw UserError(fmt::format("{} has no input '{}'", file_, name), "argument_unknown");
}

void ProgramImporter::add_user_input(Values& values, const Argument& input) {
  if (input.kind != Argument::Kind::value) return;  // a number or a text, which is part of the nodes
  const std::string& name = input.text;
  const auto found = program_.graph.tensors.find(name);
  const bool is_tensor = found != program_.graph.tensors.end();
  // Numbers are inputs of one element.
  const Shape shape = is_tensor ? dims_.input_shape(name, found->second, file_) : Shape();
  const DType dtype = is_tensor ? dtype_of(found->second.dtype, fmt::format("{}: the input '{}'", file_, name)) : i64;
  if (options_.inputs.contains(name))
    return define(values, name, importing::fixed_input(options_.inputs.at(name), name, file_, dtype, shape));
  const ir::GraphBuilder::At line(imported_.graph.builder(), Location(file_ + ":" + name, 0));
  define(values, name, imported_.graph.input(name, dtype, shape));
}

bool ProgramImporter::is_updated(const InputSpec& input) const {
  if (accesses_.written_inputs.contains(input.value.text)) return true;
  return input.kind == InputSpec::Kind::buffer &&
         std::ranges::any_of(program_.outputs, [&](const OutputSpec& output) {
           return output.kind == OutputSpec::Kind::buffer && output.target == input.target;
         });
}

/// Parameters and the buffers of the state dict keep their names. Other tensors are constants if they are small.
Value ProgramImporter::stored(const InputSpec& input) {
  const bool is_parameter = input.kind == InputSpec::Kind::parameter;
  const bool is_buffer = input.kind == InputSpec::Kind::buffer, changes = is_updated(input);
  const std::string place = tensors_.place(input.target);
  if (const auto known = stored_.find(place); known != stored_.end() && !changes) return known->second;
  HostTensor tensor = tensors_.read(input.target);
  const bool has_name = is_parameter || changes || (is_buffer && input.is_persistent);
  if (!has_name && tensor.numel() <= importing::most_elements) return Value::constant(std::move(tensor));
  const bool is_trained = is_parameter && is_float(tensor.dtype());
  if (is_trained && !tensors_.is_trained(input.target))
    detail::state_of(imported_.graph)->note_frozen_mark(input.target, std::make_shared<const bool>(true));
  Value value = importing::kept_tensor(imported_, Location(file_ + ":" + input.target, 0), input.target,
                                       std::move(tensor), is_trained ? Kept::parameter : Kept::state);
  if (!changes) stored_.emplace(place, value);
  if (changes) buffers_.emplace(input.target, value);
  return value;
}

std::set<std::string> ProgramImporter::bound_names() const {
  std::set<std::string> names;
  const ir::Graph& graph = imported_.graph.ir();
  for (const ir::ValueId argument : graph.arguments())
    for (const Dim& size : graph[argument].type.shape)
      for (const std::string& name : size.unknowns()) names.insert(name);
  return names;
}

/// Guards that are no run-time checks, such as n != 64, are decisions of the exporter that hold for its example.
void ProgramImporter::add_guards() const {
  const InputSize size_of = [&](std::string_view input, std::size_t dim) -> std::optional<Dim> {
    const auto found = program_.graph.tensors.find(input);
    if (found == program_.graph.tensors.end() || dim >= found->second.sizes.size()) return std::nullopt;
    return dims_.dim(found->second.sizes[dim]);
  };
  const std::set<std::string> bound = bound_names();
  for (const std::string& guard : program_.guards) {
    std::optional<ir::DimCheck> check = parse_guard(guard, size_of);
    if (!check || check->left == check->right) continue;
    const auto is_unbound = [&](const std::string& name) { return !bound.contains(name); };
    if (std::ranges::any_of((check->right - check->left).unknowns(), is_unbound)) continue;
    check->loc = Location(file_ + ":inputs", 0);
    const auto is_same = [&](const ir::DimCheck& other) {
      return other.left == check->left && other.right == check->right && other.relation == check->relation;
    };
    if (std::ranges::none_of(imported_.graph.ir().checks, is_same))
      imported_.graph.builder().add_checks({&*check, 1});
  }
}

void ProgramImporter::check_fixed_sizes() const {
  ir::Graph fixed;
  for (const ir::DimCheck& check : imported_.graph.ir().checks)
    if (check.left.value() && check.right.value()) fixed.checks.push_back(check);
  ir::check_dims(fixed, {});
}

void ProgramImporter::add_ranges() const {
  const std::set<std::string> bound = bound_names();
  std::vector<ir::DimCheck> checks;
  const auto add = [&](const Dim& left, const Dim& right, std::string message) {
    checks.push_back({.left = left,
                      .right = right,
                      .relation = ir::DimCheck::Relation::at_most,
                      .loc = Location(file_ + ":inputs", 0),
                      .op = "input",
                      .label = "import_range",
                      .message = std::move(message)});
  };
  for (const auto& [symbol, range] : program_.ranges) {
    const Dim& dim = dims_.symbols().at(symbol);
    if (std::ranges::any_of(dim.unknowns(), [&](const std::string& name) { return !bound.contains(name); })) continue;
    // The exporter writes 2 for sizes without a lower limit, and PyTorch runs them with 0 and 1 too.
    constexpr std::int64_t no_limit = std::int64_t{1} << 62;
    if (range.lowest && *range.lowest > 2)
      add(*range.lowest, dim, fmt::format("the model is exported for {} or more", *range.lowest));
    if (range.highest && *range.highest < no_limit)
      add(dim, *range.highest, fmt::format("the model is exported for {} or less", *range.highest));
  }
  imported_.graph.builder().add_checks(checks);
}

void ProgramImporter::add_outputs(const Values& values) {
  std::size_t user = 0;
  for (const OutputSpec& output : program_.outputs) {
    const std::string name = is_user(output) ? program_.output_names[user++] : output.target;
    if (output.value.kind != Argument::Kind::value) continue;  // None, or a number that is known before the run
    const auto found = values.find(output.value.text);
    if (found == values.end())
      throw UserError(fmt::format("{}: no node computes the output '{}'", file_, output.value.text), "import_file");
    const ir::GraphBuilder::At line(imported_.graph.builder(), Location(file_ + ":" + name, 0));
    const Tensor tensor = found->second.in(imported_.graph);
    if (is_user(output)) {
      if (options_.declares_outputs) imported_.graph.output(name, tensor);
      imported_.outputs.emplace(name, tensor);
      continue;
    }
    const auto buffer = buffers_.find(output.target);
    if (buffer == buffers_.end())
      throw UserError(fmt::format("{}: the buffer '{}', which is updated, is no input", file_, name), "import_file");
    imported_.graph.update(buffer->second.in(imported_.graph), tensor);
  }
}

void ProgramImporter::check_written() const {
  const auto& reads = accesses_.reads.at(&program_.graph);
  for (const InputSpec& input : program_.inputs) {
    if (!accesses_.written_inputs.contains(input.value.text)) continue;
    for (const InputSpec& other : program_.inputs) {
      const bool is_stored = other.kind != InputSpec::Kind::user && other.kind != InputSpec::Kind::fixed;
      if (&other == &input || !is_stored || !reads.contains(other.value.text)) continue;
      if (tensors_.file(other.target) == tensors_.file(input.target))
        throw UserError(fmt::format("{}: '{}' is written in place, and '{}' has the same memory", file_, input.target,
                                    other.target),
                        "import_unsupported", "call run_decompositions() on the exported program");
    }
  }
}

void ProgramImporter::add_written(const Values& values) {
  for (const InputSpec& input : program_.inputs) {
    if (!accesses_.written_inputs.contains(input.value.text)) continue;
    const ir::GraphBuilder::At line(imported_.graph.builder(), Location(file_ + ":" + input.target, 0));
    imported_.graph.update(buffers_.at(input.target).in(imported_.graph),
                           values.at(input.value.text).in(imported_.graph));
  }
}

}  // namespace lathe::pt2
