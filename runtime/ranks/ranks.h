#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/mesh/mesh.h"
#include "ir/support/dim.h"
#include "ir/tensor/mesh/sent_bytes.h"
#include "runtime/ranks/communicator.h"

namespace lathe {

struct RanksOptions {
  double timeout = 600;  ///< seconds without a message after which an exchange fails; 0: no timeout
  /// Advice of the error for a wrong number of processes, such as a command line; empty: "start 8, as in mpirun -n
  /// 8".
  std::string how_to_start = {};
};

using ir::SentBytes;

/// Bytes sent to sum tensors; in a data-parallel step, those of its gradients. `early` counts collectives that began
/// before the launches had computed the last value to be summed, that is, before the end of the backward pass.
struct SummedBytes {
  std::int64_t all = 0, early = 0;
};

/// This process as one of the processes that run a graph together. Rank r is process r of the mesh. A dedicated
/// thread makes all calls of the communicator and runs jobs in the order in which they were started. That order must
/// be the same on all ranks. Executables of one thread may share a Ranks.
///
/// A rank that fails ends all ranks (abort). After that, or after an error of an exchange, the object must not be
/// used.
class Ranks {
 public:
  /// Calls `make` on the communication thread. Throws UserError [mesh_processes] if the mesh does not have as many
  /// processes as are running, [compile_options] for a negative timeout, [rank_stalled], and the exceptions of
  /// `make`.
  Ranks(const MakeCommunicator& make, shard::Mesh mesh, const RanksOptions& options = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;
  int size() const;
  const shard::Mesh& mesh() const;
  double timeout() const;
  /// Returns the position along each axis: the sizes of mesh_index_dim() (ir/ops/collectives.h).
  const DimBindings& positions() const;

  /// Starts a job on the group of ranks along one axis, in the order of their positions. Throws UserError
  /// [mesh_axis].
  using Job = std::function<void(Communicator& group)>;
  std::uint64_t start(const std::string& axis, Job job);
  /// Starts a job on all ranks.
  std::uint64_t start(Job job);
  /// Waits for a job and rethrows its exception. Call it once per job.
  void wait(std::uint64_t job);
  /// Waits for a job and returns its exception.
  std::exception_ptr outcome(std::uint64_t job);

  /// Calls Communicator::exchange() on all ranks. Throws UserError [rank_stalled], [rank_failed].
  void exchange(std::span<const Message> sends, std::span<const Message> receives);
  /// Returns the text of each rank, by rank; with `axis`, of the ranks along it, by position. Throws UserError
  /// [rank_stalled], [rank_failed], [mesh_axis].
  std::vector<std::string> gather(const std::string& own, const std::string& axis = "");

  /// Returns the bytes sent by this rank in collectives of programs. passes/shard/predict/predicted_bytes.h predicts
  /// them.
  SentBytes sent() const;
  void count_sent(const SentBytes& more);
  /// Returns the bytes sent to sum tensors, for collectives between CPUs.
  SummedBytes summed() const;
  void count_summed(const SummedBytes& more);

  /// Makes current and later jobs throw [rank_failed].
  void interrupt() noexcept;
  /// Ends all ranks: see Communicator::abort. `error` is reported as an error of this rank.
  void abort(const std::string& error) noexcept;
  void abort(const std::exception& error) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs `body`. If it throws, ends all ranks, which would otherwise wait for this one, and rethrows.
void ending_all(Ranks& ranks, const std::function<void()>& body);

}  // namespace lathe
