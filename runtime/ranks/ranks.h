#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/dim.h"
#include "ir/tensor/mesh/sent_bytes.h"
#include "passes/shard/mesh.h"
#include "runtime/ranks/communicator.h"

namespace lathe {

struct RanksOptions {
  double patience = 600;  ///< seconds that an exchange may wait without a message that comes or goes; 0: for ever
  /// What the error says to do where another number of processes runs, such as a command line; empty: "start 8, as in
  /// mpirun -n 8".
  std::string how_to_start = {};
};

using ir::SentBytes;

/// Bytes that the sums of tensors have sent, of a data-parallel step those of its gradients; `early` ones were of
/// exchanges that began while the launches had not yet made the last value to be summed: before the backward pass
/// ended.
struct SummedBytes {
  std::int64_t all = 0, early = 0;
};

/// This process among those that run a graph together, each at its place in a mesh: rank r is the mesh's process r.
/// One thread of its own makes every call of the communicator, one job after the other in the order in which they
/// were started, which must be the same on all ranks. Executables of one thread may share it.
///
/// A rank that fails ends all (abort). After that, or after an error of an exchange, it is of no more use.
class Ranks {
 public:
  /// `make` is called on the communicating thread. Throws UserError [mesh_processes] where the mesh has another
  /// number of processes than there are, [compile_options] for a negative patience, [rank_stalled], and what `make`
  /// throws.
  Ranks(const MakeCommunicator& make, shard::Mesh mesh, const RanksOptions& options = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;
  int size() const;
  const shard::Mesh& mesh() const;
  double patience() const;
  /// Where it stands along each axis: the sizes of mesh_index_dim() (ir/ops/collectives.h).
  const DimBindings& positions() const;

  /// Starts a job that exchanges with the ranks of one axis, which stand in their order there. Throws UserError
  /// [mesh_axis].
  using Job = std::function<void(Communicator& group)>;
  std::uint64_t start(const std::string& axis, Job job);
  /// Starts one among all ranks.
  std::uint64_t start(Job job);
  /// Returns when the job is over; throws what it threw. Jobs are waited for once each.
  void wait(std::uint64_t job);
  /// The same, and gives what it threw.
  std::exception_ptr outcome(std::uint64_t job);

  /// Communicator::exchange() among all ranks. Throws UserError [rank_stalled], [rank_failed].
  void exchange(std::span<const Message> sends, std::span<const Message> receives);
  /// The text that each rank gives, by rank; of those along an axis, by their positions there. Throws UserError
  /// [rank_stalled], [rank_failed], [mesh_axis].
  std::vector<std::string> gather(const std::string& own, const std::string& axis = "");

  /// What the exchanges of programs have sent from this rank: passes/shard/predict/predicted_bytes.h tells what they
  /// will.
  SentBytes sent() const;
  void count_sent(const SentBytes& more);
  /// Of exchanges between CPUs.
  SummedBytes summed() const;
  void count_summed(const SummedBytes& more);

  /// Jobs under way, and all later ones, end with [rank_failed].
  void interrupt() noexcept;
  /// Ends all ranks: see Communicator::abort. `error` is told as that of this rank.
  void abort(const std::string& error) noexcept;
  void abort(const std::exception& error) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs what this rank does. An error that it throws ends all ranks, which would wait for this one, and is thrown on.
void ending_all(Ranks& ranks, const std::function<void()>& body);

}  // namespace lathe
