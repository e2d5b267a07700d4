#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

namespace lathe::cuda {

/// NCCL, through which GPUs communicate: libnccl.so.2, loaded at run time like NVRTC. Handles are NCCL's. All
/// functions except the constructor throw UserError [nccl_failed] with the call and NCCL's text.
///
/// No call waits for other ranks. Operations on a communicator are on its stream when is_ready() returns true; until
/// then, no other operation may be started on it. Calls for one communicator must come from one thread at a time.
class Nccl {
 public:
  using Comm = void*;

  /// Loads the first candidate that exists. Throws UserError [nccl_missing] with the searched paths, or if the
  /// library is too old.
  explicit Nccl(const std::vector<std::string>& candidates);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  std::string version() const;         ///< "2.28.9"
  const std::string& library() const;  ///< name or path from which it was loaded

  /// Returns an id for a new group. One rank creates it and sends it to the others.
  std::string make_id() const;
  /// Joins a group with this thread's current device. It is ready when all ranks have joined.
  Comm join(const std::string& id, int rank, int ranks) const;
  /// Also throws if an earlier asynchronous operation has failed.
  bool is_ready(Comm comm) const;
  /// Starts the shutdown. It is ready when all operations have completed; then call destroy().
  void finalize(Comm comm) const;
  void destroy(Comm comm) const noexcept;
  /// Replaces destroy(). Ends all operations; their results are undefined.
  void abort(Comm comm) const noexcept;

  /// Calls in between, for one communicator and one stream, form a group. Sends and receives of different ranks match
  /// in order.
  void begin_group() const;
  void end_group() const;
  void send(Comm comm, int peer, const void* from, std::size_t bytes, Driver::Handle stream) const;
  void receive(Comm comm, int peer, void* to, std::size_t bytes, Driver::Handle stream) const;
  /// Gathers `bytes` bytes of each rank at `to` on all ranks, in rank order.
  void all_gather(Comm comm, const void* from, void* to, std::size_t bytes, Driver::Handle stream) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

/// Returns the names under which NCCL may be found, in order. Paths in `folders` are first.
std::vector<std::string> nccl_candidates(const std::vector<std::filesystem::path>& folders = {});

}  // namespace lathe::cuda
