#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/import/onnx/onnx_model.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe::onnx {

/// The initializers of a graph in a file next to the model's.
class ExternalData {
 public:
  /// Moves the elements of the graph's initializers, except small ones, to the file `location`. The graph then refers
  /// to this object.
  ExternalData(GraphProto& graph, const std::string& location);
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  /// Writes the file.
  void write(AtomicFile& file) const;

 private:
  std::deque<std::string> texts_;
  std::vector<std::pair<std::uint64_t, std::span<const std::byte>>> tensors_;  ///< by offset
};

}  // namespace lathe::onnx
