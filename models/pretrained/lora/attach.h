#pragma once

#include "models/pretrained/lora/lora.h"

/// Attaching adapters to the layers of a model's tree.
namespace lathe::pretrained {

/// Adds adapters to the layers that the configuration selects. Freezes everything except the adapters and the modules
/// to save. Does not set values. Throws UserErrors [adapter_target], [adapter_pattern], [parameter_name].
Lora attach(const LoraBase& base, const LoraConfig& config);

/// Throws UserError [adapter_target] for a name in the configuration's lists that no module has.
void check_names(const LoraBase& base, const LoraConfig& config);

}  // namespace lathe::pretrained
