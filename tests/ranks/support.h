#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "runtime/executable.h"
#include "runtime/ranks/thread_communicator.h"

/// What tests of several processes share.
namespace lathe::test {

/// How models are divided among the processes of an axis "model".
inline const std::string by_model = "h:model,d_ff:model,vocab:model";

/// A small GPT-2's training step with AdamW, dropout and clipping; a Llama's, without dropout.
ir::Graph small_step(DType dtype, double clip_norm = 0.5, int layers = 1);
ir::Graph small_llama_step(DType dtype, int layers = 1);

/// Tokens of one batch, i64 [batch, length + 1], by its number.
HostTensor tokens_of(std::int64_t number, std::int64_t batch = 8, std::int64_t length = 6);

/// A mesh, the splits over it and how each process computes.
struct Division {
  std::string mesh, splits;
  shard::ShardOptions parts = {};
  ObjectStore* cache = nullptr;  ///< of compiled code, for all ranks
  int threads = 1;
  std::int64_t bucket_bytes = NetworkInfo{}.bucket_bytes;
  const Tensors* start = nullptr;  ///< what training starts from; start_of() where it is null
};

/// Values of a step's parameters and states.
Tensors start_of(const ir::Graph& step);

/// What a rank compiles for; what is empty is this machine's CPU.
using MachineOf = std::function<CompileOptions(const std::shared_ptr<Ranks>& ranks)>;

/// Trains for so many steps on this rank, on whole batches, of which it takes its rows: the losses, and at the end
/// every state as a whole, under its name.
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
/// On as many threads of this process as the mesh has ranks; what rank 0 gives.
Trained train_in_threads(const ir::Graph& step, int steps, const Division& division, std::int64_t batch = 8,
                         const MachineOf& machine = {});

/// The largest difference of any loss or state, relative to the largest element of its tensor where that is above 1.
double difference(const Trained& a, const Trained& b);
bool same_bits(const Trained& a, const Trained& b);

/// Rows of a table, which an index may miss, and their sum over two ranks.
inline const char* const lookup_text = R"(graph @g(input %table: f32[4, 2], input %ids: i64[3]) {
  %1 = gather %table, %ids {dim=0}
  %2 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  output "y" %2
})";
/// What it is run on: the third index is `last`.
Tensors lookup_arguments(std::int64_t last);

/// The UserError of a rank; empty for none.
struct RankFailure {
  std::string label, text;
};
/// What each of so many ranks throws.
std::vector<RankFailure> rank_failures(int count, const std::function<void(int rank, const MakeCommunicator&)>& body);

}  // namespace lathe::test
