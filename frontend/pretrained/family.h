#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/pretrained/config.h"
#include "frontend/pretrained/keys/families.h"

namespace lathe::pretrained {

/// How the files of a family name tensors, where it is not as the model names its parameters.
struct TensorNames {
  /// Tensors that the model does not need: names, their ends after a '*', or their starts before one.
  std::vector<std::string> ignored = {};
  std::string prefix = {};  ///< that some files leave out of names
  /// Ends of names and what other files have instead of them: {".LayerNorm.weight", ".LayerNorm.gamma"}.
  std::vector<std::pair<std::string, std::string>> others = {};
};

/// The family, derived from FamilyRecord, that config.json names. UserError [config_value] of reject_model_type().
template <class Family>
const Family& family_of(const Config& config, const std::vector<Family>& families, ModelKind kind) {
  const std::string type = config.text("model_type");
  for (const Family& family : families)
    if (family.model_type == type) return family;
  reject_model_type(config, kind);
}

template <class Family>
std::vector<FamilyRecord> records_of(const std::vector<Family>& families) {
  return {families.begin(), families.end()};
}

/// Whether config.json names one of the families.
template <class Family>
bool is_one_of(const Config& config, const std::vector<Family>& families) {
  const std::string type = config.text("model_type", "");
  return std::any_of(families.begin(), families.end(),
                     [&](const Family& family) { return family.model_type == type; });
}

}  // namespace lathe::pretrained
