#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

namespace lathe::cuda {

/// NCCL, by which GPUs exchange memory: libnccl.so.2, found at run time as NVRTC is. Handles are NCCL's own.
/// Everything but the constructor throws UserError [nccl_failed], with the call and NCCL's text.
///
/// No call waits for other ranks. What was asked of a communicator is on its stream when is_ready() says so, and
/// nothing else may be asked of it before. Calls for one communicator come from one thread at a time.
class Nccl {
 public:
  using Comm = void*;

  /// The first of these files that is there. UserError [nccl_missing] says where it was sought, or that it is too
  /// old.
  explicit Nccl(const std::vector<std::string>& candidates);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  std::string version() const;         ///< "2.28.9"
  const std::string& library() const;  ///< the name or path that it was loaded by

  /// What the ranks of a group find each other by: one of them makes it, and gives it to the others.
  std::string make_id() const;
  /// Joins a group with the device that is current on this thread; ready when all ranks have joined.
  Comm join(const std::string& id, int rank, int ranks) const;
  /// Also throws where a message failed on its way since.
  bool is_ready(Comm comm) const;
  /// Waits for what is on its way; ready when that is done, to be destroyed.
  void finalize(Comm comm) const;
  void destroy(Comm comm) const noexcept;
  /// In place of destroy(), whatever it does: what is on streams ends there, with any results.
  void abort(Comm comm) const noexcept;

  /// What is asked for in between, of one communicator on one stream, goes together. Several ranks' sends and
  /// receives match in their order.
  void begin_group() const;
  void end_group() const;
  void send(Comm comm, int peer, const void* from, std::size_t bytes, Driver::Handle stream) const;
  void receive(Comm comm, int peer, void* to, std::size_t bytes, Driver::Handle stream) const;
  /// As many bytes of each rank to all, at `to` in the order of ranks.
  void all_gather(Comm comm, const void* from, void* to, std::size_t bytes, Driver::Handle stream) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

/// The names that NCCL may be found by, in order, with these folders first.
std::vector<std::string> nccl_candidates(const std::vector<std::filesystem::path>& folders = {});

}  // namespace lathe::cuda
