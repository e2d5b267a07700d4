#pragma once

/// All that a program needs to build a model, differentiate it, compile it and run it. The parts by themselves are
/// <lathe/frontend/nn/attention.h> and so on, in the folders of the source tree.
#include "frontend/decoding.h"
#include "frontend/lathe.h"
#include "ir/support/dlpack.h"
#include "ir/tensor/explain.h"
#include "ir/tensor/printer.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/executable.h"
#include "runtime/files/checkpoint.h"
#include "runtime/files/safetensors.h"
