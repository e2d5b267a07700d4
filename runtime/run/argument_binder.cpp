#include "runtime/run/argument_binder.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "passes/program/program_loops.h"

namespace lathe {

namespace {

std::string describe(DType dtype, const std::vector<std::int64_t>& shape) {
  return fmt::format("{}{}", name(dtype), shape_to_string(shape));
}

void check_strides(std::string_view name, const std::vector<std::int64_t>& shape,
                   const std::vector<std::int64_t>& strides) {
  if (strides.empty() || strides.size() == shape.size()) return;
  throw UserError(fmt::format("{} has {} strides for the shape {}", name, strides.size(), shape_to_string(shape)),
                  "argument_strides", "give one stride per dim, or none for row-major order");
}

void check_alignment(std::string_view name, DType dtype, const std::vector<std::int64_t>& shape, const void* data) {
  if (reinterpret_cast<std::uintptr_t>(data) % size_in_bytes(dtype) == 0) return;
  throw UserError(fmt::format("{}: {} is at an address that is not a multiple of {} bytes", name,
                              describe(dtype, shape), size_in_bytes(dtype)),
                  "argument_alignment", "copy the elements to aligned memory");
}

/// Returns the address range of an array, from its lowest byte to the end of its highest element.
std::pair<const std::byte*, const std::byte*> extent(const TensorRef& tensor) {
  const auto size = static_cast<std::int64_t>(size_in_bytes(tensor.dtype));
  if (count_elements(tensor.shape) == 0) return {tensor.data, tensor.data};
  if (tensor.strides.empty()) return {tensor.data, tensor.data + count_elements(tensor.shape) * size};
  std::int64_t low = 0, high = 0;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    const std::int64_t reach = (tensor.shape[d] - 1) * tensor.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  return {tensor.data + low * size, tensor.data + (high + 1) * size};
}

/// Returns whether a shape contains the unknown, which other sizes may then determine.
bool mentions(const std::vector<Program::Slot>& slots, const std::string& unknown) {
  return std::ranges::any_of(slots, [&](const Program::Slot& slot) {
    return std::ranges::any_of(slot.shape, [&](const Dim& dim) {
      const std::vector<std::string> unknowns = dim.unknowns();
      return std::ranges::find(unknowns, unknown) != unknowns.end();
    });
  });
}

/// Returns whether a run reads or writes the memory of a slot.
bool is_touched(const Program& program, const Program::Slot& slot) {
  bool touched = slot.is_updated;
  for (const Launch& launch : program.launches)
    touched =
        touched || std::ranges::any_of(launch.buffers, [&](int b) { return storage_of(program, b) == slot.buffer; });
  for (const Collective& collective : program.collectives)
    for_buffers(collective, [&](int buffer, bool) { touched = touched || buffer == slot.buffer; });
  for (const Program::Slot& output : program.outputs) touched = touched || output.buffer == slot.buffer;
  return touched;
}

/// Returns zeros to use as the value of a state that no run reads or writes; nullopt if the slot is used or its size
/// is unknown.
std::optional<StoredTensor> stand_in_for(const Program& program, const Program::Slot& slot) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : slot.shape) {
    if (!dim.value()) return std::nullopt;
    sizes.push_back(*dim.value());
  }
  if (is_touched(program, slot)) return std::nullopt;
  return StoredTensor{.host = HostTensor(slot.dtype, sizes)};
}

std::pair<const std::byte*, const std::byte*> extent(const HostTensor& tensor) {
  return {tensor.data(), tensor.data() + tensor.bytes()};
}

}  // namespace

ArgumentBinder::ArgumentBinder(const ir::Graph& signature, const Program& program, std::vector<std::string> given,
                               DimBindings fixed)
    : signature_(signature),
      program_(program),
      required_dims_(std::move(given)),
      fixed_(std::move(fixed)),
      given_(program.inputs.size()),
      inputs_(program.inputs.size()),
      outputs_(program.outputs.size()),
      dense_inputs_(program.inputs.size()),
      dense_outputs_(program.outputs.size()),
      input_shapes_(program.inputs.size()),
      output_shapes_(program.outputs.size()) {}

void ArgumentBinder::resolve_states(ParameterStore& store) {
  if (store_ == &store && version_ == store.version) return;
  store_ = nullptr;
  bound_ = false;
  states_ = store.resolve(program_);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i]) continue;
    if (!stand_ins_.contains(i)) {
      auto made = stand_in_for(program_, program_.states[i]);
      if (!made) store.throw_unset(program_, program_.states[i]);
      stand_ins_.emplace(i, std::move(*made));
    }
    states_[i] = &stand_ins_.at(i);
  }
  store_ = &store;
  version_ = store.version;
}

/// Analyzes how the dims of the next run follow from its inputs. dims_are_linear_ is set if each dim is linear in
/// one unknown and no unknown needs several sizes. Then bind_again() gives the result of bind_dims() for other
/// shapes.
void ArgumentBinder::find_sources() {
  sources_.clear(), state_dims_.clear();
  dims_are_linear_ = true;
  std::set<std::string, std::less<>> known(required_dims_.begin(), required_dims_.end());
  for (const auto& [name, size] : fixed_) known.insert(name);
  const auto linear = [&](const Dim& dim) -> std::optional<Source> {
    Source source{0, 0, {}, 0, 0};
    for (const Dim::Term& term : dim.terms()) {
      if (term.monomial.empty()) {
        source.rest = term.coefficient;
      } else if (!source.unknown.empty() || term.monomial.size() > 1 || term.monomial[0].second > 1) {
        return std::nullopt;
      } else {
        source.unknown = term.monomial[0].first, source.slope = term.coefficient;
      }
    }
    return source;
  };
  for (std::size_t i = 0; i < program_.inputs.size(); ++i)
    for (int d = 0; d < program_.inputs[i].shape.rank(); ++d) {
      const Dim& dim = program_.inputs[i].shape[d];
      if (dim.value()) continue;
      auto source = linear(dim);
      dims_are_linear_ = dims_are_linear_ && source;
      if (!source) continue;
      source->input = i, source->dim = static_cast<std::size_t>(d);
      known.insert(source->unknown);
      sources_.push_back(std::move(*source));
    }
  for (std::size_t i = 0; i < states_.size(); ++i)
    for (int d = 0; d < program_.states[i].shape.rank(); ++d) {
      const Dim& dim = program_.states[i].shape[d];
      if (dim.value()) continue;
      const auto source = linear(dim);
      dims_are_linear_ = dims_are_linear_ && source;
      if (source) known.insert(source->unknown);
      state_dims_.emplace_back(dim, states_[i]->host.shape()[d]);
    }
  dims_are_linear_ =
      dims_are_linear_ && std::ranges::all_of(dims_, [&](const auto& one) { return known.contains(one.first); });
}

/// Computes the same as bind_anew() for inputs of other shapes with the same states. Returns false if the inputs do
/// not fit; then bind_anew() throws the error.
bool ArgumentBinder::bind_again(const DimBindings& given) {
  if (!bound_ || !dims_are_linear_ || given.size() != required_dims_.size()) return false;
  bound_ = false;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const Program::Slot& slot = program_.inputs[i];
    const std::vector<std::int64_t>& shape = *given_[i].shape;
    if (given_[i].dtype != slot.dtype || std::ssize(shape) != slot.shape.rank()) return false;
    for (int d = 0; d < slot.shape.rank(); ++d)
      if (const auto known = slot.shape[d].value(); known && *known != shape[d]) return false;
  }
  for (const std::string& name : required_dims_) {
    const auto found = given.find(name);
    if (found == given.end() || found->second < 0) return false;
    dims_.find(name)->second = found->second;
  }
  const auto size_of = [&](const Source& source) { return (*given_[source.input].shape)[source.dim]; };
  for (const Source& source : sources_) {
    if (given.contains(source.unknown) || fixed_.contains(source.unknown)) continue;
    dims_.find(source.unknown)->second = (size_of(source) - source.rest) / source.slope;
  }
  for (const Source& source : sources_) {
    const std::int64_t unknown = dims_.find(source.unknown)->second;
    if (unknown < 0 || source.rest + source.slope * unknown != size_of(source)) return false;
  }
  for (const auto& [dim, size] : state_dims_)
    if (dim.evaluate(dims_) != size) return false;
  for (const ir::DimCheck& check : signature_.checks) {
    const std::int64_t left = check.left.evaluate(dims_), right = check.right.evaluate(dims_);
    if (check.relation == ir::DimCheck::Relation::equal ? left != right : left > right) return false;
  }
  given_dims_ = given;
  for (std::size_t i = 0; i < given_.size(); ++i) input_shapes_[i] = *given_[i].shape;
  for (std::size_t i = 0; i < output_shapes_.size(); ++i)
    for (std::size_t d = 0; d < output_shapes_[i].size(); ++d)
      output_shapes_[i][d] = program_.outputs[i].shape[static_cast<int>(d)].evaluate(dims_);
  return bound_ = true;
}

/// Returns whether these inputs have the types for which dims_ was computed.
bool ArgumentBinder::is_as_before(const DimBindings& given) const {
  if (!bound_ || given != given_dims_) return false;
  for (std::size_t i = 0; i < given_.size(); ++i)
    if (given_[i].dtype != program_.inputs[i].dtype || *given_[i].shape != input_shapes_[i]) return false;
  return true;
}

void ArgumentBinder::bind_anew(const std::map<std::string, ir::ArgumentShape>& inputs, const DimBindings& given) {
  bound_ = false;
  auto shapes = inputs;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const std::string& name = program_.states[i].name;
    if (shapes.contains(name))
      throw UserError(fmt::format("{} is a parameter or state of @{}, not an input", name, program_.name),
                      "argument_unknown", "set it in the executable's parameters()");
    shapes[name] = {states_[i]->host.dtype(), states_[i]->host.shape()};
  }
  check_given(given);
  DimBindings known = given;
  known.insert(fixed_.begin(), fixed_.end());
  dims_ = ir::bind_dims(signature_, shapes, known);
  given_dims_ = given;
  for (std::size_t i = 0; i < given_.size(); ++i) input_shapes_[i] = *given_[i].shape;
  for (std::size_t i = 0; i < output_shapes_.size(); ++i)
    output_shapes_[i] = program_.outputs[i].shape.evaluate(dims_);
  bound_ = true;
  find_sources();
}

void ArgumentBinder::check_given(const DimBindings& given) const {
  for (const std::string& name : required_dims_)
    if (!given.contains(name) && !mentions(program_.inputs, name) && !mentions(program_.states, name))
      throw UserError(fmt::format("no argument of @{} determines the size {}", program_.name, name), "dim_unbound",
                      "pass it with the arguments of the run");
  const std::vector<std::string_view> known(required_dims_.begin(), required_dims_.end());
  for (const auto& [name, size] : given) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError(fmt::format("the size {} cannot be passed to @{}", name, program_.name), "dim_unknown",
                      known.empty() ? std::string("its arguments determine all sizes")
                                    : did_you_mean_or_list(name, known, "the sizes to pass are"));
    if (size < 0)
      throw UserError(fmt::format("the size {} of @{} is {}", name, program_.name, size), "dim_negative",
                      "give 0 or more");
  }
}

template <class Inputs, class See>
const DimBindings& ArgumentBinder::bind_all(const Inputs& inputs, const DimBindings& given, const See& see) {
  bool complete = inputs.size() == program_.inputs.size();
  for (std::size_t i = 0; complete && i < given_.size(); ++i) {
    const auto found = inputs.find(program_.inputs[i].name);
    complete = found != inputs.end();
    if (complete) given_[i] = see(found->second);
  }
  if (complete && (is_as_before(given) || bind_again(given))) return dims_;
  std::map<std::string, ir::ArgumentShape> shapes;
  for (const auto& [name, tensor] : inputs) shapes[name] = {see(tensor).dtype, *see(tensor).shape};
  bind_anew(shapes, given);
  return dims_;
}

const DimBindings& ArgumentBinder::bind(const Tensors& inputs, const DimBindings& given) {
  bind_all(inputs, given, [](const HostTensor& t) { return Given{t.dtype(), &t.shape(), t.data()}; });
  for (std::size_t i = 0; i < given_.size(); ++i) inputs_[i] = given_[i].data;
  return dims_;
}

const DimBindings& ArgumentBinder::bind(const InputRefs& inputs, const DimBindings& given) {
  for (const auto& [name, tensor] : inputs) {
    check_strides(name, tensor.shape, tensor.strides);
    check_alignment(name, tensor.dtype, tensor.shape, tensor.data);
  }
  bind_all(inputs, given, [](const ConstTensorRef& t) { return Given{t.dtype, &t.shape, t.data}; });
  for (std::size_t i = 0; i < given_.size(); ++i) inputs_[i] = dense(inputs.find(program_.inputs[i].name)->second, i);
  return dims_;
}

/// Returns the elements in row-major order: in place if possible, otherwise in a copy.
const std::byte* ArgumentBinder::dense(const ConstTensorRef& tensor, std::size_t slot) {
  if (is_row_major(tensor.shape, tensor.strides)) return tensor.data;
  HostTensor& copy = dense_inputs_[slot];
  if (copy.dtype() != tensor.dtype || copy.shape() != tensor.shape) copy = HostTensor(tensor.dtype, tensor.shape);
  gather(tensor, copy.data());
  return copy.data();
}

RunArguments ArgumentBinder::arguments(Tensors& outputs) {
  const auto& slots = program_.outputs;
  bool kept = false;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    HostTensor& tensor = outputs.try_emplace(slots[i].name).first->second;
    if (tensor.dtype() == slots[i].dtype && tensor.shape() == output_shapes_[i])
      kept = true;
    else
      tensor = HostTensor(slots[i].dtype, output_shapes_[i]);
    outputs_[i] = tensor.data();
  }
  if (outputs.size() != slots.size())
    for (auto output = outputs.begin(); output != outputs.end();) {
      const auto is_own = [&](const auto& slot) { return slot.name == output->first; };
      output = std::ranges::any_of(slots, is_own) ? std::next(output) : outputs.erase(output);
    }
  if (kept) check_overlaps(outputs);
  return arguments();
}

RunArguments ArgumentBinder::arguments(const OutputRefs& outputs) {
  const auto& slots = program_.outputs;
  for (const auto& [name, tensor] : outputs) {
    if (std::any_of(slots.begin(), slots.end(), [&](const auto& slot) { return slot.name == name; })) continue;
    std::vector<std::string_view> known;
    for (const Program::Slot& slot : slots) known.push_back(slot.name);
    throw UserError(fmt::format("@{} has no output {}", program_.name, name), "output_unknown",
                    did_you_mean(name, known));
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto found = outputs.find(slots[i].name);
    if (found == outputs.end())
      throw UserError(fmt::format("no memory is given for the output {} of @{}", slots[i].name, program_.name),
                      "output_missing",
                      fmt::format("it is {} in this run", describe(slots[i].dtype, output_shapes_[i])));
    const TensorRef& tensor = found->second;
    check_strides(slots[i].name, tensor.shape, tensor.strides);
    if (tensor.dtype != slots[i].dtype || tensor.shape != output_shapes_[i])
      throw UserError(fmt::format("the output {} is {} in this run, the memory given is for {}", slots[i].name,
                                  describe(slots[i].dtype, output_shapes_[i]), describe(tensor.dtype, tensor.shape)),
                      "output_type", "give memory of that type and shape");
    check_alignment(slots[i].name, tensor.dtype, tensor.shape, tensor.data);
    outputs_[i] = tensor.data;
    if (is_row_major(tensor.shape, tensor.strides)) continue;
    HostTensor& copy = dense_outputs_[i];
    if (copy.dtype() != tensor.dtype || copy.shape() != tensor.shape) copy = HostTensor(tensor.dtype, tensor.shape);
    outputs_[i] = copy.data();
  }
  check_overlaps(outputs);
  return arguments();
}

/// Throws if outputs overlap, because they are written while inputs, states and other outputs are in use.
template <class Outputs>
void ArgumentBinder::check_overlaps(const Outputs& outputs) const {
  using Range = std::pair<const std::byte*, const std::byte*>;
  const auto check = [&](std::string_view output, const Range& mine, std::string_view other, const Range& range) {
    if (mine.first < range.second && range.first < mine.second)
      throw UserError(
          fmt::format("the memory given for the output {} of @{} overlaps {}", output, program_.name, other),
          "output_overlap", "give it memory of its own");
  };
  for (auto at = outputs.begin(); at != outputs.end(); ++at) {
    const Range mine = extent(at->second);
    for (auto other = outputs.begin(); other != at; ++other)
      check(at->first, mine, other->first, extent(other->second));
    for (std::size_t i = 0; i < given_.size(); ++i)
      check(at->first, mine, program_.inputs[i].name,
            {inputs_[i], inputs_[i] + static_cast<std::size_t>(count_elements(input_shapes_[i])) *
                                          size_in_bytes(program_.inputs[i].dtype)});
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const HostTensor& state = states_[i]->host;
      check(at->first, mine, program_.states[i].name, {state.data(), state.data() + state.bytes()});
    }
  }
}

Tensors ArgumentBinder::copies(std::span<const std::string> names) const {
  Tensors found;
  for (const std::string& name : names) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (program_.inputs[i].name == name)
        gather({program_.inputs[i].dtype, input_shapes_[i], inputs_[i]},
               found.set(name, HostTensor(program_.inputs[i].dtype, input_shapes_[i])).data());
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (program_.states[i].name == name) found.set(name, states_[i]->on_host());
  }
  return found;
}

void ArgumentBinder::finish(const OutputRefs& outputs) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const TensorRef& tensor = outputs.find(program_.outputs[i].name)->second;
    if (outputs_[i] != tensor.data) scatter(outputs_[i], tensor);
  }
}

}  // namespace lathe
