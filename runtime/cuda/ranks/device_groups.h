#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cuda/device.h"
#include "runtime/cuda/ranks/nccl.h"
#include "runtime/ranks/ranks.h"

namespace lathe::cuda {

/// The GPUs of ranks, one each, in groups along the axes of their mesh: what NCCL's communicators are between GPUs,
/// started through those of the ranks. Executables of one thread may share it.
class DeviceGroups {
 public:
  /// This rank's GPU. All ranks call it; throws on all of them UserError [rank_devices] where two have the same GPU,
  /// [ranks_differ] for different versions of NCCL.
  DeviceGroups(std::shared_ptr<Ranks> ranks, std::shared_ptr<const Nccl> nccl, std::shared_ptr<Driver> driver,
               int device);
  ~DeviceGroups();
  DeviceGroups(const DeviceGroups&) = delete;
  DeviceGroups& operator=(const DeviceGroups&) = delete;

  Ranks& ranks() const { return *ranks_; }
  int device() const { return device_; }

  /// Joins the ranks of an axis, all of which call it; does nothing after the first time. Throws UserError
  /// [nccl_failed], [rank_stalled] where one does not come, [rank_failed], [mesh_axis].
  void join(const std::string& axis);

  /// Puts calls on a stream, as one group; it returns when they are there, done or not. Throws UserError
  /// [nccl_failed], and [rank_failed] after abort().
  using Calls = std::function<void(const Nccl& nccl, Nccl::Comm comm)>;
  void put(const std::string& axis, const Calls& calls);

  /// From any thread: throws [nccl_failed] where something has failed on its way.
  void check();
  /// From any thread: what is on streams ends there, with any results. It is of no more use.
  void abort() noexcept;

 private:
  Nccl::Comm joined(Communicator& group, const std::string& id) const;
  bool is_ready(Nccl::Comm comm);
  void leave(Nccl::Comm comm) const;

  std::shared_ptr<Ranks> ranks_;
  std::shared_ptr<const Nccl> nccl_;
  std::shared_ptr<Driver> driver_;
  int device_;
  Context context_;
  std::mutex mutex_;                         ///< held while NCCL is called
  std::map<std::string, Nccl::Comm> comms_;  ///< by axis
  std::atomic<bool> is_aborted_ = false;
};

}  // namespace lathe::cuda
