#include "models/generation/exported/exported_graph.h"

namespace lathe {

Executable& ExportedGraph::compiled(std::int64_t sequences, DimBindings sizes, const SequenceModelOptions& options) {
  Side& of = side(sequences);
  if (sequences == 1) sizes["B"] = 1;
  const auto found = of.compiled.find(sizes);
  if (found != of.compiled.end()) return found->second;
  return of.compiled.emplace(sizes, compile_over(of.store, graph_, options, sizes)).first->second;
}

}  // namespace lathe
