#pragma once

#include <string>

#include "tests/fuzz/oracles/oracles.h"

/// The results for a text must depend only on that text. Random f64 models of every family of models/pretrained:
/// one pass over each text on its own, compared with batches with padding on either side, packed rows, losses of
/// TokenBatches, and prompts in chunks with cached steps.
namespace lathe::fuzz {

/// Checks the model of a seed. Successive seeds cycle through the families.
Complaint text_alone(unsigned seed);

/// Returns the config.json of this model.
std::string text_case(unsigned seed);

}  // namespace lathe::fuzz
