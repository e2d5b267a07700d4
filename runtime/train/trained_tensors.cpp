#include "runtime/train/trained_tensors.h"

#include <nlohmann/json.hpp>

#include "runtime/parameters/lend.h"
#include "runtime/ranks/agreement.h"
#include "runtime/ranks/whole_tensors.h"
#include "runtime/train/batches.h"

namespace lathe {

namespace {

/// Returns the elements in place if they are dense and row-major, otherwise in a copy.
HostTensor row_major(const ConstTensorRef& tensor) {
  if (is_row_major(tensor.shape, tensor.strides))
    return HostTensor::borrow(tensor.dtype, tensor.shape, const_cast<std::byte*>(tensor.data));
  HostTensor copy(tensor.dtype, tensor.shape);
  gather(tensor, copy.data());
  return copy;
}

}  // namespace

HostTensor TrainedTensors::part(const Executable& executable, const std::string& name, HostTensor whole) const {
  if (!ranks_) return whole;
  const auto placement = executable.placements().find(name);
  // Unknown names are rejected later, when the value is set or the graph runs.
  if (placement == executable.placements().end()) return whole;
  return own_part(*ranks_, std::move(whole), placement->second, name);
}

const InputRefs& TrainedTensors::parts(const Executable& executable, const InputRefs& wholes, OwnInputs& own) const {
  if (!ranks_) return wholes;
  own.tensors.clear();
  for (const auto& [name, whole] : wholes) own.tensors.emplace(name, part(executable, name, row_major(whole)));
  refer_to(own.tensors, own.refs);
  return own.refs;
}

Tensors TrainedTensors::wholes(const Executable& executable, std::span<const std::string> names) const {
  const Parameters parameters = executable.parameters();
  const auto where_it_lies = [&](const std::string& name) { return lend(parameters.get(name), parameters.store()); };
  if (ranks_) {
    std::vector<OwnPart> parts;
    for (const std::string& name : names)
      parts.push_back({name, where_it_lies(name), executable.placements().at(name)});
    return wholes_on_first(*ranks_, std::move(parts));
  }
  Tensors wholes;
  for (const std::string& name : names) wholes.emplace(name, where_it_lies(name));
  return wholes;
}

void TrainedTensors::set(const Executable& executable, std::span<const std::string> names,
                         const SafetensorsFile* file) const {
  Parameters parameters = executable.parameters();
  for (const std::string& name : names) {
    std::optional<HostTensor> whole;
    if (file) whole = file->tensor(name);
    parameters.set(
        name, ranks_ ? part_from_first(*ranks_, whole ? &*whole : nullptr, executable.placements().at(name), name)
                     : std::move(*whole));
  }
}

bool TrainedTensors::any(bool own) const { return ranks_ ? any_of_ranks(*ranks_, own) : own; }

std::string TrainedTensors::of_first(const std::string& own) const {
  return ranks_ ? text_of_first(*ranks_, own) : own;
}

Tensors TrainedTensors::of_first(const Tensors& own) const {
  if (!ranks_) return own;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : own) names.push_back(name);
  names = nlohmann::json::parse(text_of_first(*ranks_, nlohmann::json(names).dump())).get<std::vector<std::string>>();
  const shard::Placement whole(ranks_->mesh().axes().size(), shard::Whole{});
  Tensors found;
  for (const std::string& name : names)
    found.emplace(name, part_from_first(*ranks_, is_first() ? &own.at(name) : nullptr, whole, name));
  return found;
}

std::string TrainedTensors::first_said(const std::string& own) const {
  if (!ranks_) return own;
  for (std::string& said : ranks_->gather(own))
    if (!said.empty()) return std::move(said);
  return {};
}

}  // namespace lathe
