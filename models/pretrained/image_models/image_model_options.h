#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/nn/feed_forward.h"
#include "frontend/nn/norm.h"
#include "models/pretrained/transformer_layer.h"

namespace lathe::pretrained {

/// A model as its configuration describes it. Names are those in the files.
struct ImageModelOptions {
  std::string_view kind;  ///< name in messages: "Vit"
  Dim hidden, channels, height, width, patch_height, patch_width;
  DType dtype = f32;
  std::vector<TransformerLayerOptions> layers = {};
  nn::NormOptions norm = {};        ///< of the last layer's states
  std::string root;                 ///< prefix of all names except those of the classifier
  std::optional<Dim> classes = {};  ///< none: the model has no classifier
  std::optional<Dim> pooled = {};   ///< width of the pooler's output, if the model has one; a classifier excludes it
  nn::Activation pooler_activation = nn::Activation::tanh;
};

}  // namespace lathe::pretrained
