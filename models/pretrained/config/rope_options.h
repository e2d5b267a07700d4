#pragma once

#include <string_view>

#include "frontend/nn/attention/rope.h"
#include "models/pretrained/config/config.h"

/// The options of rotary embeddings in a configuration.
namespace lathe::pretrained {

/// Returns the rotary embedding of "rope_parameters", or of "rope_theta" and "rope_scaling" in older files. `kind`
/// selects one of several, such as "full_attention".
nn::RopeOptions rope_options(const Config& config, std::string_view kind = {});

/// Returns the number of rotated dims per head: the head size times partial_rotary_factor or rotary_pct.
Dim rotary_dim(const Config& config);

}  // namespace lathe::pretrained
