#pragma once

#include "models/pretrained/config/key_table.h"

namespace lathe {

/// Returns a rule for every key of generation_config.json that transformers' GenerationConfig has.
const pretrained::KeyTable& generation_keys();

}  // namespace lathe
