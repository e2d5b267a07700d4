#include "runtime/cuda/ranks/rank_platform.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "ir/support/error.h"
#include "runtime/cuda/ranks/device_groups.h"
#include "runtime/ranks/agreement.h"

namespace lathe::cuda {

namespace {

using Ids = std::vector<std::string>;

Ids words_of(const std::string& text) {
  std::istringstream in(text);
  Ids words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool share_one(const Ids& a, const Ids& b) {
  return std::ranges::any_of(a, [&](const std::string& id) { return std::ranges::find(b, id) != b.end(); });
}

std::string so_many(std::size_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

int device_of_rank(Ranks& ranks, Driver& driver) {
  Ids own;
  for (int device = 0; device < driver.device_count(); ++device) own.push_back(driver.device_id(device));
  std::vector<Ids> seen;
  for (const std::string& text : ranks.gather(fmt::format("{}", fmt::join(own, " ")))) seen.push_back(words_of(text));
  std::set<std::string> taken;
  int device = 0;
  for (std::size_t r = 0; r < seen.size(); ++r) {
    const auto free = std::ranges::find_if(seen[r], [&](const std::string& id) { return !taken.contains(id); });
    if (free == seen[r].end()) {
      const auto sharing = std::ranges::count_if(seen, [&](const Ids& ids) { return share_one(ids, seen[r]); });
      const std::size_t gpus = seen[r].size();
      throw_together(ranks,
                     UserError(fmt::format("rank {} has no GPU of its own: {} ranks see the same {}", r, sharing,
                                           so_many(gpus, "GPU")),
                               "rank_devices",
                               fmt::format("start at most {} on such a machine, or show them more of its GPUs: "
                                           "CUDA_VISIBLE_DEVICES, --gpus-per-task of Slurm",
                                           so_many(gpus, "rank"))));
    }
    taken.insert(*free);
    if (static_cast<int>(r) == ranks.rank()) device = static_cast<int>(free - seen[r].begin());
  }
  return device;
}

std::shared_ptr<const Platform> platform_of_rank(const std::shared_ptr<Ranks>& ranks,
                                                 const std::vector<std::filesystem::path>& cuda_folders) {
  auto platform = std::make_shared<Platform>(*local_platform(cuda_folders));
  const auto nccl = std::make_shared<const Nccl>(nccl_candidates(cuda_folders));
  platform->device = device_of_rank(*ranks, *platform->driver);
  platform->groups = std::make_shared<DeviceGroups>(ranks, nccl, platform->driver, platform->device);
  return platform;
}

}  // namespace lathe::cuda
