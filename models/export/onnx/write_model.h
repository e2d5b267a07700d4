#pragma once

#include "models/export/onnx/wire_writer.h"
#include "models/import/onnx/onnx_model.h"

namespace lathe::onnx {

/// Returns the bytes of a model's file, which read_model() reads as the same model. The message refers to the raw
/// tensors of the model.
WireMessage encode(const ModelProto& model);

}  // namespace lathe::onnx
