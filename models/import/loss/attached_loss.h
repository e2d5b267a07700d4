#pragma once

#include <string>
#include <string_view>

#include "models/import/import.h"

namespace lathe::importing {

/// A loss of an imported graph, which has none: what an output is compared with.
struct AttachedLoss {
  enum class Kind : std::uint8_t {
    cross_entropy,  ///< logits [.., classes] and i64 classes [..], or probabilities; -100 is ignored, as in PyTorch
    next_token,     ///< logits [B, T, classes] and the tokens [B, T] that they were computed from
    mse,            ///< the mean of (output - target)^2, of equal shapes
    binary_cross_entropy,  ///< of logits, with targets in 0 .. 1 of equal shape
    output,                ///< the output itself, a number: the graph computes its loss
  };
  Kind kind;
  std::string output;  ///< name of an output of the graph
  std::string target;  ///< name of an input of the graph, or of a new one; empty for Kind::output
};

/// Parses KIND:OUTPUT,TARGET, such as "cross_entropy:logits,labels", or output:OUTPUT. Throws UserError
/// [import_loss].
AttachedLoss parse_loss(std::string_view text);

/// Returns the loss, f32[] or f64[] as the output. A target that is no input becomes one, with the shape and dtype
/// that the loss needs. Throws UserError [import_loss] for an output that does not exist or does not fit the loss,
/// and those of the loss's ops for a target that does not fit.
Tensor attach_loss(const ImportedGraph& imported, const AttachedLoss& loss);

}  // namespace lathe::importing
