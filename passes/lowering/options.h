#pragma once

#include <cstdint>

namespace lathe {

/// What becomes of attentions.
enum class AttentionFusion : std::uint8_t {
  automatic,  ///< those that are found run as one kernel each: passes/fusion/attention.h
  off,        ///< each product and softmax runs by itself, through memory
  required,   ///< as automatic; a softmax that is not fused is an error
};

struct LowerOptions {
  AttentionFusion attention = AttentionFusion::automatic;
};

}  // namespace lathe
