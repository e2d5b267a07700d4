#pragma once

#include <string_view>

#include "models/pretrained/causal_lm.h"

namespace lathe::pretrained {

/// Builds the graph of a model's loss, the output "loss", on the batches of TokenBatches
/// (models/text/dataset/token_batches.h). Inputs: "input_ids" and "labels" i64 [B, T], "weight" f64 [], and for
/// packed rows "position_ids" and "segments" i64 [B, T]. Unpacked rows have "lengths" i64 [B] if the model depends on
/// them (CausalLm::depends_on_length(), BatchOptions::lengths). Computes in `dtype`.
Graph token_loss(const CausalLm& model, std::string_view name, const Dim& B, const Dim& T, bool packed,
                 DType dtype = f32);

}  // namespace lathe::pretrained
