#pragma once

/// Files of tensors: safetensors files and checkpoints.
#include "runtime/files/checkpoint.h"
#include "runtime/files/safetensors/safetensors.h"
