#pragma once

#include <map>
#include <string>
#include <vector>

namespace lathe::tools {

/// Settings of a run by name, as a checkpoint keeps them.
using Settings = std::map<std::string, std::string>;

/// Compares what a checkpoint was made with to what the run that goes on from it has. Settings of `fixed` decide what
/// the states mean: UserError [train_resume] where they differ, with all that do. A setting that the checkpoint does
/// not know does not differ.
void check_same_settings(const Settings& checkpoint, const Settings& run, const std::string& folder);

/// A line for each setting that differs and may: "going on with lr=0.0001; so far it was 0.001".
std::vector<std::string> changed_settings(const Settings& checkpoint, const Settings& run);

}  // namespace lathe::tools
