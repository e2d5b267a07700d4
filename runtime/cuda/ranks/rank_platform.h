#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "runtime/cuda/platform.h"
#include "runtime/ranks/ranks.h"

namespace lathe::cuda {

/// Returns this rank's GPU: the first visible one that no earlier rank uses. So it does not matter whether the ranks
/// of a machine see all GPUs or one each. Must be called by all ranks. Throws UserError [rank_devices] on all of them
/// if a rank has no GPU.
int device_of_rank(Ranks& ranks, Driver& driver);

/// Returns local_platform() for one of several ranks, with its own GPU and with NCCL. Libraries are searched for in
/// `cuda_folders` first. Must be called by all ranks. Throws UserErrors of local_platform(), device_of_rank(), Nccl
/// [nccl_missing] and DeviceGroups.
std::shared_ptr<const Platform> platform_of_rank(const std::shared_ptr<Ranks>& ranks,
                                                 const std::vector<std::filesystem::path>& cuda_folders = {});

}  // namespace lathe::cuda
