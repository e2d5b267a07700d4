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

/// Groups of the ranks' GPUs along the axes of their mesh: NCCL communicators, set up through the ranks'
/// communicators. Executables of one thread may share it.
class DeviceGroups {
 public:
  /// `device` is this rank's GPU. Must be called by all ranks. Throws on all of them: UserError [rank_devices] if two
  /// ranks have the same GPU, [ranks_differ] for different versions of NCCL.
  DeviceGroups(std::shared_ptr<Ranks> ranks, std::shared_ptr<const Nccl> nccl, std::shared_ptr<Driver> driver,
               int device);
  ~DeviceGroups();
  DeviceGroups(const DeviceGroups&) = delete;
  DeviceGroups& operator=(const DeviceGroups&) = delete;

  Ranks& ranks() const { return *ranks_; }
  int device() const { return device_; }

  /// Joins the ranks of an axis at the first call; must be called by all of them. Throws UserError [nccl_failed],
  /// [rank_stalled] if a rank does not join, [rank_failed], [mesh_axis].
  void join(const std::string& axis);

  /// Enqueues calls as one NCCL group. Returns when they are on the stream, possibly before they complete. Throws
  /// UserError [nccl_failed], and [rank_failed] after abort().
  using Calls = std::function<void(const Nccl& nccl, Nccl::Comm comm)>;
  void put(const std::string& axis, const Calls& calls);

  /// Throws [nccl_failed] if an asynchronous operation has failed. May be called from any thread.
  void check();
  /// Ends all operations on streams; their results are undefined. May be called from any thread. The object must not
  /// be used afterwards.
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
  std::mutex mutex_;                         ///< held during calls of NCCL
  std::map<std::string, Nccl::Comm> comms_;  ///< by axis
  std::atomic<bool> is_aborted_ = false;
};

}  // namespace lathe::cuda
