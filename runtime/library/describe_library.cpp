#include "runtime/library/describe_library.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace lathe {

namespace {

using Json = nlohmann::ordered_json;

/// Incremented when the C interface of libraries changes.
constexpr int interface_version = 1;

Json shape_of(const Shape& shape) {
  Json dims = Json::array();
  for (const Dim& dim : shape) {
    if (const auto number = dim.value())
      dims.push_back(*number);
    else
      dims.push_back(dim.unnamed().to_string());
  }
  return dims;
}

Json describe_slots(const std::vector<LibrarySlot>& slots) {
  Json list = Json::array();
  for (const LibrarySlot& slot : slots)
    list.push_back({{"name", slot.name},
                    {"member", slot.c_name},
                    {"dtype", std::string(name(slot.dtype))},
                    {"shape", shape_of(slot.shape)}});
  return list;
}

}  // namespace

std::string describe_library(const LibraryPlan& plan) {
  Json json{{"interface", interface_version}, {"prefix", plan.prefix}, {"levels", plan.targets}};
  json["dims"] = Json::array();
  for (const LibraryDimension& dim : plan.dims)
    json["dims"].push_back({{"name", dim.name}, {"member", dim.c_name}, {"most", dim.most}});
  json["states"] = describe_slots(plan.states);
  for (std::size_t i = 0; i < plan.states.size(); ++i) {
    json["states"][i]["parameter"] = plan.states[i].is_parameter;
    json["states"][i]["updated"] = plan.states[i].is_written;
  }
  json["functions"] = Json::array();
  for (const LibraryFunction& function : plan.functions)
    json["functions"].push_back({{"name", plan.prefix + function.suffix()},
                                 {"graph", function.programs.at(0).name},
                                 {"inputs", describe_slots(function.inputs)},
                                 {"outputs", describe_slots(function.outputs)}});
  return json.dump();
}

std::string list_sources(const LibraryPlan& plan) {
  std::string text;
  for (std::size_t t = 0; t < plan.targets.size(); ++t)
    for (const LibraryFunction& function : plan.functions) {
      const Program& program = function.programs[t];
      text += fmt::format("{}{} on {}: {} launches of {} kernels\n", plan.prefix, function.suffix(), plan.targets[t],
                          program.launches.size(), program.kernels.size());
      for (std::size_t l = 0; l < program.launches.size(); ++l) {
        const Launch& launch = program.launches[l];
        text += fmt::format("  {:>5}  {}", l, program.kernels[launch.kernel].name);
        for (const LaunchOp& op : launch.info.ops) text += fmt::format("  {}", op.to_string());
        text += fmt::format("  {}\n", launch.loc.to_string());
      }
    }
  return text;
}

}  // namespace lathe
