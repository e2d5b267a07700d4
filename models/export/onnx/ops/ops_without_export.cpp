#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/nodes/export_table.h"

namespace lathe::onnx {

std::span<const ExportRecord> ops_without_export() {
  constexpr std::string_view random =
                                 "ONNX has no random numbers that depend on a state: export a graph for "
                                 "evaluation, without dropout",
                             ranks = "ONNX has one process: export the graph before it is sharded",
                             matrices = "ONNX has no decompositions of matrices";
  static constexpr ExportRecord records[] = {
      {&ir::ops::dropout, nullptr, random},
      {&ir::ops::random_uniform, nullptr, random},
      {&ir::ops::random_uniform_at, nullptr, random},
      {&ir::ops::mesh_index, nullptr, ranks},
      {&ir::ops::all_reduce, nullptr, ranks},
      {&ir::ops::all_gather, nullptr, ranks},
      {&ir::ops::reduce_scatter, nullptr, ranks},
      {&ir::ops::all_to_all, nullptr, ranks},
      {&ir::ops::send_recv, nullptr, ranks},
      {&ir::ops::cholesky, nullptr, matrices},
      {&ir::ops::solve_triangular, nullptr, matrices},
      {&ir::ops::orthonormal_basis, nullptr, matrices},
      {&ir::ops::eigenvectors, nullptr, matrices},
  };
  return records;
}

}  // namespace lathe::onnx
