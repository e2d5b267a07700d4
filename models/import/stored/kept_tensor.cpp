#include "models/import/stored/kept_tensor.h"

namespace lathe::importing {

Shape shape_of(const HostTensor& tensor) {
  return Shape(std::vector<Dim>(tensor.shape().begin(), tensor.shape().end()));
}

Value kept_tensor(ImportedGraph& imported, const Location& location, const std::string& name, HostTensor tensor,
                  Kept kept) {
  // Borrows its memory, which the file, or the tensor that is copied here, keeps alive.
  const auto shared = std::make_shared<HostTensor>(std::move(tensor));
  const auto borrowed = [shared] {
    return HostTensor::borrow_private(shared->dtype(), shared->shape(), shared->data(), shared);
  };
  const auto declare = [&imported, location, shared, borrowed, name, kept] {
    const Graph& graph = imported.graph;
    const ir::GraphBuilder::At line(graph.builder(), location);
    imported.parameters.set(name, borrowed());
    return kept == Kept::parameter ? graph.parameter(name, shared->dtype(), shape_of(*shared))
                                   : graph.state(name, shared->dtype(), shape_of(*shared));
  };
  return Value::stored(borrowed(), declare);
}

}  // namespace lathe::importing
