#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "runtime/compile.h"
#include "runtime/ranks/thread_communicator.h"

/// Shared code of the tests with several ranks.
namespace lathe::test {

/// How models are sharded along an axis "model".
inline const std::string by_model = "h:model,d_ff:model,vocab:model";

/// Returns the training step of a small GPT-2 with AdamW, dropout and clipping; of a Llama, without dropout.
ir::Graph small_step(DType dtype, double clip_norm = 0.5, int layers = 1);
ir::Graph small_llama_step(DType dtype, int layers = 1);

/// Returns the tokens of batch `number`, i64 [batch, length + 1].
HostTensor tokens_of(std::int64_t number, std::int64_t batch = 8, std::int64_t length = 6);

/// A mesh, the splits over it, and how each rank computes.
struct Division {
  std::string mesh, splits;
  shard::ShardOptions parts = {};
  ObjectStore* cache = nullptr;  ///< of compiled code, shared by all ranks
  int threads = 1;
  std::int64_t bucket_bytes = NetworkInfo{}.bucket_bytes;
  const Tensors* start = nullptr;  ///< initial values; null: start_of()
};

/// Returns values for a step's parameters and states.
Tensors start_of(const ir::Graph& step);

/// Returns the compile options of a rank; the default is this machine's CPU.
using MachineOf = std::function<CompileOptions(const std::shared_ptr<Ranks>& ranks)>;

/// Results of training on a rank, which takes its rows of the global batches: the losses, and at the end every state,
/// unsharded, under its name.
struct Trained {
  std::vector<double> losses;
  Tensors states;
  std::vector<ir::SentBytes> sent = {};  ///< by rank, in all steps
  std::string decided = {};              ///< CompileSummary::division
};
Trained train(const ir::Graph& step, int steps, const Division& division, const std::shared_ptr<Ranks>& ranks,
              std::int64_t batch = 8, const MachineOf& machine = {});
/// The same on one process.
Trained train(const ir::Graph& step, int steps, const Tensors* start = nullptr);
/// Trains in as many threads of this process as the mesh has ranks. Returns the results of rank 0.
Trained train_in_threads(const ir::Graph& step, int steps, const Division& division, std::int64_t batch = 8,
                         const MachineOf& machine = {});

/// Returns the largest difference of any loss or state, relative to the largest element of its tensor if that is
/// above 1.
double difference(const Trained& a, const Trained& b);
bool same_bits(const Trained& a, const Trained& b);

/// Looks up rows of a table, where an index may be out of range, and sums them over two ranks.
inline const char* const lookup_text = R"(graph @g(input %table: f32[4, 2], input %ids: i64[3]) {
  %1 = gather %table, %ids {dim=0}
  %2 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  output "y" %2
})";
/// Returns its arguments; the third index is `last`.
Tensors lookup_arguments(std::int64_t last);

/// The UserError of a rank; empty if there is none.
struct RankFailure {
  std::string label, text;
};
/// Returns the errors of `count` ranks.
std::vector<RankFailure> rank_failures(int count, const std::function<void(int rank, const MakeCommunicator&)>& body);

}  // namespace lathe::test
