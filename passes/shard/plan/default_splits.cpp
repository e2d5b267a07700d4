#include "passes/shard/plan/default_splits.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

DefaultSplits default_splits(const ir::Graph& forward, const Mesh& mesh) {
  DefaultSplits found;
  for (const MeshAxis& axis : mesh.axes())
    if (axis.name == "data" || axis.name == "fsdp") found.splits.push_back({"B", axis.name});
  for (const MeshAxis& axis : mesh.axes()) {
    if (axis.name != "model") continue;
    for (const char* dim : {"h", "d_ff", "vocab"}) {
      // The error of shard() shows what prevents the split: a size or an op.
      const Split split{dim, axis.name};
      try {
        static_cast<void>(shard(forward, Mesh({axis}), {split}));
        found.splits.push_back(split);
      } catch (const UserError& error) {
        const std::string why = error.what();
        found.left_out.push_back(fmt::format("{}:{}: {}", dim, axis.name, why.substr(0, why.find('\n'))));
      }
    }
  }
  return found;
}

}  // namespace lathe::shard
