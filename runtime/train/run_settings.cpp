#include "runtime/train/run_settings.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe {

namespace {

/// Calls `use` with the name, the old value and the new value of each setting that differs.
template <class Use>
void for_each_difference(const Settings& checkpoint, const Settings& run, Use&& use) {
  for (const auto& [name, value] : run)
    if (const auto before = checkpoint.find(name); before != checkpoint.end() && before->second != value)
      use(name, before->second, value);
}

}  // namespace

void check_same_settings(const Settings& checkpoint, const Settings& run, const std::string& folder) {
  std::string theirs, ours;
  for_each_difference(checkpoint, run, [&](const auto& name, const auto& before, const auto& now) {
    theirs += fmt::format("{}{}={}", theirs.empty() ? "" : ", ", name, before);
    ours += fmt::format("{}{}={}", ours.empty() ? "" : ", ", name, now);
  });
  if (!theirs.empty())
    throw UserError(fmt::format("the checkpoint in {} has {}, this run {}", folder, theirs, ours), "train_resume",
                    "give the same settings, give another folder, or start from scratch");
}

std::vector<std::string> changed_settings(const Settings& checkpoint, const Settings& run) {
  std::vector<std::string> lines;
  for_each_difference(checkpoint, run, [&](const auto& name, const auto& before, const auto& now) {
    lines.push_back(fmt::format("resuming with {}={}, previously {}", name, now, before));
  });
  return lines;
}

}  // namespace lathe
