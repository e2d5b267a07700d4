#include "runtime/train/trained_tensors.h"

#include <nlohmann/json.hpp>

#include "runtime/ranks/agreement.h"
#include "runtime/ranks/whole_tensors.h"

namespace lathe {

HostTensor TrainedTensors::part(const Executable& executable, const std::string& name,
                                const HostTensor& whole) const {
  if (!ranks_) return whole;
  const auto placement = executable.placements().find(name);
  // What the graph does not know is refused when it is set or run.
  return placement == executable.placements().end() ? whole : own_part(*ranks_, whole, placement->second, name);
}

Tensors TrainedTensors::parts(const Executable& executable, const Tensors& wholes) const {
  Tensors own;
  for (const auto& [name, whole] : wholes) own.emplace(name, part(executable, name, whole));
  return own;
}

std::vector<TensorView> TrainedTensors::wholes(const Executable& executable, std::span<const std::string> names,
                                               std::map<std::string, HostTensor>& made) const {
  std::vector<TensorView> views;
  const Parameters parameters = executable.parameters();
  for (const std::string& name : names) {
    const HostTensor& own = parameters.get(name);
    if (!ranks_ || is_whole(executable.placements().at(name))) {
      if (is_first()) views.push_back(view_of(name, own));
    } else if (auto whole = whole_on_first(*ranks_, own, executable.placements().at(name), name)) {
      views.push_back(view_of(name, made.insert_or_assign(name, std::move(*whole)).first->second));
    }
  }
  return views;
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

std::map<std::string, HostTensor> TrainedTensors::of_first(const std::map<std::string, HostTensor>& own) const {
  if (!ranks_) return own;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : own) names.push_back(name);
  names = nlohmann::json::parse(text_of_first(*ranks_, nlohmann::json(names).dump())).get<std::vector<std::string>>();
  const shard::Placement whole(ranks_->mesh().axes().size(), shard::Whole{});
  std::map<std::string, HostTensor> found;
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
