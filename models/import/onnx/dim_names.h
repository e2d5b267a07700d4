#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ir/support/dim.h"
#include "models/import/onnx/onnx_model.h"

namespace lathe::onnx {

/// The dims of a model's inputs. A name in the file is one dim. An expression of names, such as "past + sequence", is
/// their polynomial, if each of the names is itself a size of an input, or follows from one: n from 2*n + 1. Other
/// texts become names: characters that names cannot have become underscores.
class DimNames {
 public:
  explicit DimNames(const GraphProto& graph);

  /// Returns size `i` of an input. One without number and name is called "<input>_<i>".
  Dim dim(const ValueProto& input, std::size_t i);

 private:
  std::string free_name(std::string_view text);

  std::set<std::string, std::less<>> plain_;                 ///< names that are sizes, or follow from them
  std::set<std::string, std::less<>> taken_;                 ///< names of dims
  std::map<std::string, std::string, std::less<>> renamed_;  ///< by the text in the file
};

}  // namespace lathe::onnx
