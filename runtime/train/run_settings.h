#pragma once

#include <map>
#include <string>
#include <vector>

namespace lathe {

/// Settings by name, as a checkpoint keeps them.
using Settings = std::map<std::string, std::string>;

/// What a training run was started with, kept in its checkpoints.
struct RunSettings {
  Settings fixed = {};       ///< decide what the states mean: a run goes on only where they are the same
  Settings changeable = {};  ///< may be others when a run goes on: Trainer::changed_settings() says which are
  Settings kept = {};        ///< whatever else belongs to the run, such as a vocabulary: never compared
};

/// Compares what a checkpoint was made with to what the run that goes on from it has: UserError [train_resume] where
/// they differ, with all that do. A setting that the checkpoint does not know does not differ.
void check_same_settings(const Settings& checkpoint, const Settings& run, const std::string& folder);

/// A line for each setting that differs: "going on with lr=0.0001; so far it was 0.001".
std::vector<std::string> changed_settings(const Settings& checkpoint, const Settings& run);

}  // namespace lathe
