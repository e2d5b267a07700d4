#include "runtime/ranks/whole_tensors.h"

#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/support/texts/error_label.h"

/// Unsharded tensors, assembled from the shards of ranks.
namespace lathe::test {

namespace {

/// Placements of [12, 4]: dim 0 in 3 blocks over a, each of which is split over b; or replicas along an axis.
std::vector<shard::Placement> placements() {
  using shard::SplitDim, shard::Whole;
  const SplitDim blocks{0, Dim(3), Dim(2)}, inside{0, Dim(6), Dim(1)}, columns{1, Dim(1), Dim(2)};
  return {{blocks, inside}, {inside, Whole{}}, {Whole{}, columns}, {blocks, columns}, {Whole{}, Whole{}}};
}

HostTensor numbers() {
  HostTensor whole(f64, {12, 4});
  for (std::int64_t i = 0; i < whole.numel(); ++i) whole.set(i, static_cast<double>(i));
  return whole;
}

}  // namespace

TEST_CASE("ranks: gathering the shards of a tensor gives the tensor on every rank") {
  const HostTensor whole = numbers();
  const shard::Mesh mesh = shard::Mesh::parse("a=2,b=2");
  for (const shard::Placement& placement : placements()) {
    std::vector<HostTensor> parts(4);
    run_ranks(4, [&](int rank, const MakeCommunicator& make) {
      Ranks ranks(make, mesh, RanksOptions{.timeout = 60});
      HostTensor& part = parts[static_cast<std::size_t>(rank)];
      part = own_part(ranks, whole, placement, "w");
      if (!whole_of(ranks, part, placement, "w").same_bits(whole)) throw InternalError("another tensor");
      std::vector<OwnPart> two{{"v", part, placement}, {"w", part, placement}};
      const Tensors wholes = wholes_on_first(ranks, std::move(two));
      if (wholes.size() != (rank == 0 ? 2 : 0)) throw InternalError("tensors on another rank");
      for (const auto& [name, value] : wholes)
        if (!value.same_bits(whole)) throw InternalError("another tensor " + name);
    });
    CAPTURE(to_string(placement, mesh));
    const bool is_split = !std::holds_alternative<shard::Whole>(placement[0]);
    CHECK(parts[0].same_bits(parts[2]) != is_split);
  }
}

TEST_CASE("ranks: replicas that differ are an error on every rank, with the axis") {
  // In halves with replicas over a, and replicated everywhere.
  for (const shard::Placement& placement : {placements()[2], placements()[4]}) {
    std::vector<std::string> labels(4), first_labels(4);
    try {
      run_ranks(4, [&](int rank, const MakeCommunicator& make) {
        Ranks ranks(make, shard::Mesh::parse("a=2,b=2"), RanksOptions{.timeout = 60});
        HostTensor part = own_part(ranks, numbers(), placement, "w");
        if (rank == 3) part.set(0, -1);
        const auto at = static_cast<std::size_t>(rank);
        labels[at] = error_label([&] { (void)whole_of(ranks, part, placement, "w"); });
        first_labels[at] = error_label([&] { (void)wholes_on_first(ranks, {{"w", part, placement}}); });
      });
    } catch (const UserError&) {  // compared by label
    }
    CHECK(labels == std::vector<std::string>(4, "mesh_disagree"));
    CHECK(first_labels == labels);
  }
}

}  // namespace lathe::test
