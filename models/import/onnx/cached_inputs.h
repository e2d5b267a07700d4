#pragma once

#include <string>
#include <vector>

#include "models/import/import.h"
#include "models/import/imported_value.h"
#include "models/import/past_rows.h"

namespace lathe::onnx {

/// The inputs of past keys and values that become states, which runs update in place (ImportOptions::caches).
class CachedInputs final : public importing::PastRows {
 public:
  CachedInputs(const importing::ImportOptions& options, std::string file)
      : options_(options), file_(std::move(file)) {}

  bool contains(std::string_view input) const { return options_.caches.contains(std::string(input)); }
  /// Declares the state of an input of this type, with `capacity` rows. Returns its first rows, which are the input.
  /// Throws UserError [argument_shape] for a dim that it does not have, and for a batch that differs from that of
  /// other inputs.
  Tensor add(const Graph& graph, const std::string& input, DType dtype, const Shape& shape);
  bool contains(const Tensor& past) const override;
  std::optional<Tensor> join(const Tensor& past, const Tensor& rows, int dim) override;
  /// Replaces results that join an input with new rows: writes the new rows to the state, and returns its first rows.
  void rewrite(importing::Results& results);
  /// Returns whether an output is the value of a cache. Throws UserError [import_unsupported] if it is another value
  /// than the input joined with new rows.
  bool is_output(std::string_view output, const Tensor& value) const;
  /// Throws UserError [argument_unknown] for an input or output that the model does not have, and for parents without
  /// a cache.
  void require_outputs() const;

 private:
  struct Cache {
    std::string input, output;
    int dim;
    Tensor state, before;  ///< `before`: with the rows of each sequence's parent
    Tensor past;
    Tensor joined = {};  ///< empty until a node joins the rows
    mutable bool has_output = false;
  };
  /// Returns a state [batch, ..] with the rows of each sequence's parent.
  Tensor of_parents(const Graph& graph, const std::string& input, const Tensor& state);
  static bool is_past(const Cache& cache, const Tensor& past);

  const importing::ImportOptions& options_;
  std::string file_;
  std::vector<Cache> caches_;
  Tensor parents_ = {};  ///< empty until the first cache needs it
};

}  // namespace lathe::onnx
