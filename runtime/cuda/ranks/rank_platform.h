#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "runtime/cuda/platform.h"
#include "runtime/ranks/ranks.h"

namespace lathe::cuda {

/// The GPU that is this rank's own: the first of those that it sees which no rank before it has, so that it does not
/// matter whether all ranks of a machine see all GPUs or each its own. All ranks call it. Throws UserError
/// [rank_devices] on all of them where one is left without.
int device_of_rank(Ranks& ranks, Driver& driver);

/// local_platform() for one rank of several, on its own GPU and with NCCL, both sought in these folders first. All
/// ranks call it. UserErrors of local_platform(), device_of_rank(), Nccl [nccl_missing] and DeviceGroups.
std::shared_ptr<const Platform> platform_of_rank(const std::shared_ptr<Ranks>& ranks,
                                                 const std::vector<std::filesystem::path>& cuda_folders = {});

}  // namespace lathe::cuda
