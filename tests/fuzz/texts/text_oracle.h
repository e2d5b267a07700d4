#pragma once

#include <string>

#include "tests/fuzz/oracles.h"

/// A text's result depends on the text alone: random models of every family of frontend/pretrained in f64, one
/// pass over each text alone against batches with padding on either side, packed rows, losses of TokenBatches, and
/// prompts in chunks with cached steps.
namespace lathe::fuzz {

/// Checks the model of a seed. Successive seeds cycle through the families.
Complaint text_alone(unsigned seed);

/// The config.json of this model.
std::string text_case(unsigned seed);

}  // namespace lathe::fuzz
