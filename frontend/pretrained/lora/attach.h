#pragma once

#include "frontend/pretrained/lora/lora.h"

/// The rewrite of a model's tree that gives layers their adapters.
namespace lathe::pretrained {

/// Adds adapters to the layers that the configuration chooses, and freezes all but them and the modules to save.
/// Values are not set. UserErrors [adapter_target], [adapter_pattern], [parameter_name].
Lora attach(const LoraBase& base, const LoraConfig& config);

/// Throws UserError [adapter_target] for a name in the lists of the configuration that no module has.
void check_names(const LoraBase& base, const LoraConfig& config);

}  // namespace lathe::pretrained
