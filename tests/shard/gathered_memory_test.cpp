#include <catch2/catch.hpp>
#include <map>

#include "passes/memory/memory_plan.h"
#include "passes/shard/predict/held_bytes.h"
#include "passes/shard/predict/rank_scaling.h"
#include "tests/shard/support.h"

/// Memory of gathered parameters and of gradients in flight, compared with the report of `lathe shard --explain`.
namespace lathe::shard::test {

namespace {

/// Returns the peak bytes of the communication buffers that `chosen` selects.
template <class Chosen>
std::int64_t most_at_a_time(const Program& program, const MemoryPlan& plan, Chosen chosen) {
  std::vector<bool> counts(program.buffers.size());
  for (const lathe::Collective& collective : program.collectives)
    for (const lathe::Collective::Part& part : collective.parts)
      if (const int buffer = chosen(collective, part); buffer >= 0) counts[static_cast<std::size_t>(buffer)] = true;
  std::map<int, std::int64_t> change;
  for (const MemoryPlan::Block& block : plan.blocks) {
    if (!counts[static_cast<std::size_t>(block.buffer)]) continue;
    change[block.first] += block.bytes;
    change[block.last + 1] -= block.bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [launch, more] : change) most = std::max(most, now += more);
  return most;
}

struct Held {
  std::int64_t gathered, scattered, arena, predicted;
};

Held held(const ir::Graph& step) {
  const shard::Sharded sharded =
      shard::shard(step, shard::Mesh::parse("data=4"), {{"B", "data"}}, {.parameters = "data"});
  const Program program = program_of(sharded.graph);
  DimBindings dims = local_dims(sharded, {{"B", 8}, {"T", 6}});
  dims.emplace("mesh_index@data", 1);
  const MemoryPlan plan = plan_memory(program, dims);
  const auto gathered = [](const lathe::Collective& collective, const lathe::Collective::Part& part) {
    return collective.kind == lathe::Collective::Kind::all_gather ? part.to : -1;
  };
  const auto scattered = [](const lathe::Collective& collective, const lathe::Collective::Part& part) {
    return collective.kind == lathe::Collective::Kind::reduce_scatter ? part.from : -1;
  };
  return {most_at_a_time(program, plan, gathered), most_at_a_time(program, plan, scattered), plan.arena_bytes,
          held_bytes(sharded.graph).gathered};
}

/// Wide enough that vectors, which kernels read together with matrices, are negligible.
ir::Graph wide_gpt(int layers) {
  models::GptConfig config = lathe::test::divisible_gpt(layers, 0.1, f32);
  config.d_model = Dim("d_model", 256);
  return lathe::test::gpt_step(config, AdamW{}, {.clip_norm = 0.5});
}

ir::Graph wide_llama(int layers) {
  models::LlamaConfig config = lathe::test::divisible_llama(layers, f32);
  config.d_model = Dim("d_model", 256);
  config.d_ff = Dim("d_ff", 512);
  config.head_dim = Dim("head_dim", 32);
  return lathe::test::llama_step(config, AdamW{}, {.clip_norm = 0.5});
}

/// Returns the peak bytes of reduced values: inputs, received chunks and results. On data=4, for a GPT with 12.6 MB
/// of weights per layer.
std::int64_t held_of_sums(int layers, const ShardOptions& parts, double clip_norm) {
  models::GptConfig config = lathe::test::divisible_gpt(layers, 0, f32);
  config.d_model = Dim("d_model", 512);
  const ir::Graph step = lathe::test::gpt_step(config, AdamW{}, {.clip_norm = clip_norm});
  const shard::Sharded sharded = shard::shard(step, shard::Mesh::parse("data=4"), {{"B", "data"}}, parts);
  const Program program = program_of(sharded.graph);
  DimBindings dims = local_dims(sharded, {{"B", 8}, {"T", 6}});
  dims.emplace("mesh_index@data", 1);
  const MemoryPlan plan = plan_memory(program, dims);
  std::int64_t bytes = 0;
  std::vector<int lathe::Collective::Part::*> buffers = {&lathe::Collective::Part::from,
                                                         &lathe::Collective::Part::received};
  // A shard of a sum becomes a shard of the new state, which is in flight until the end.
  if (parts.states.empty()) buffers.push_back(&lathe::Collective::Part::to);
  for (int lathe::Collective::Part::* buffer : buffers)
    bytes +=
        most_at_a_time(program, plan, [&](const lathe::Collective& collective, const lathe::Collective::Part& part) {
          return collective.kind != lathe::Collective::Kind::all_gather ? part.*buffer : -1;
        });
  return bytes;
}

}  // namespace

TEST_CASE("shard: memory of pending gradients does not grow with the number of layers") {
  for (const ShardOptions& parts : {ShardOptions{}, ShardOptions{.states = "data"}}) {
    CAPTURE(parts.states);
    const std::int64_t ten = held_of_sums(10, parts, 0), fourteen = held_of_sums(14, parts, 0);
    CHECK(ten > 0);
    CHECK(100 * fourteen < 101 * ten);  // norms of vectors are computed together
  }
  // Every update waits for a norm of all gradients.
  CHECK(10 * held_of_sums(14, {}, 0.5) > 12 * held_of_sums(10, {}, 0.5));
}

TEST_CASE("shard: a program holds the largest group and the matrix in use and the next one") {
  // The vocabulary table has the size of 16 matrices, so a second copy of it would change every number.
  constexpr std::int64_t vocab = 8192, d = 128, largest = vocab * d * 4, matrix = 4 * d * d * 4;
  models::GptConfig gpt = lathe::test::divisible_gpt(3, 0, f32);
  gpt.d_model = Dim("d_model", d);
  gpt.vocab = Dim("vocab", vocab);
  models::LlamaConfig llama = lathe::test::divisible_llama(3, f32);
  llama.d_model = Dim("d_model", d);
  llama.d_ff = Dim("d_ff", 4 * d);
  llama.vocab = Dim("vocab", vocab);
  const Held tied = held(lathe::test::gpt_step(gpt, AdamW{}, {})),
             untied = held(lathe::test::llama_step(llama, AdamW{}, {}));
  for (const Held& each : {tied, untied}) {
    CAPTURE(largest, matrix, each.gathered, each.predicted, each.scattered, each.arena);
    CHECK(each.gathered >= largest);
    CHECK(each.predicted >= largest);
    CHECK(100 * each.gathered < 102 * (largest + 2 * matrix));
    CHECK(100 * each.predicted < 102 * (largest + 2 * matrix));
    // In addition, the arena has the table's gradient, whole and as received chunks.
    CHECK(each.arena < 3 * largest);
  }
}

TEST_CASE("shard: a program holds the predicted gathered bytes, for any number of layers") {
  for (const auto& make : {&wide_gpt, &wide_llama}) {
    const Held two = held(make(2)), six = held(make(6));
    CAPTURE(two.gathered, two.predicted, two.scattered, two.arena, six.gathered, six.scattered, six.arena);
    CHECK(static_cast<double>(two.gathered) == Approx(two.predicted).epsilon(0.02));
    CHECK(static_cast<double>(six.gathered) == Approx(six.predicted).epsilon(0.02));
    CHECK(six.predicted == two.predicted);
    CHECK(six.scattered == two.scattered);
  }
}

}  // namespace lathe::shard::test
