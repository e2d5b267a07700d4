#pragma once

#include <map>
#include <string>
#include <vector>

namespace lathe {

/// Settings by name, as stored in a checkpoint.
using Settings = std::map<std::string, std::string>;

/// Settings of a training run, stored in its checkpoints.
struct RunSettings {
  Settings fixed = {};       ///< define the meaning of the states: a run resumes only if they are equal
  Settings changeable = {};  ///< may change when a run resumes; Trainer::changed_settings() reports changes
  Settings kept = {};        ///< other data of the run, such as a vocabulary; never compared
};

/// Throws UserError [train_resume] if a setting of the checkpoint differs from that of the resuming run; it lists all
/// that differ. Settings that are not in the checkpoint are ignored.
void check_same_settings(const Settings& checkpoint, const Settings& run, const std::string& folder);

/// Returns a line for each setting that differs: "resuming with lr=0.0001, previously 0.001".
std::vector<std::string> changed_settings(const Settings& checkpoint, const Settings& run);

}  // namespace lathe
