#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/pretrained/config.h"
#include "models/pretrained/keys/families.h"

namespace lathe::pretrained {

/// The tensor names in a family's files, where they differ from the model's parameter names.
struct TensorNames {
  /// Tensors that the model does not need: names, or suffixes after a '*', or prefixes before one.
  std::vector<std::string> ignored = {};
  std::string prefix = {};  ///< prefix that some files omit
  /// Suffixes of names and their replacements in other files: {".LayerNorm.weight", ".LayerNorm.gamma"}.
  std::vector<std::pair<std::string, std::string>> others = {};
};

/// Returns the family, derived from FamilyRecord, that config.json names. Throws UserError [config_value] of
/// reject_model_type().
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
  for (const Family& family : families)
    if (family.model_type == type) return true;
  return false;
}

}  // namespace lathe::pretrained
