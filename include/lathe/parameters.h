#pragma once

/// Values of parameters and states: the store, initial values, and memory of other libraries.
#include "frontend/initial_values.h"
#include "ir/support/tensors/dlpack.h"
#include "runtime/parameters/parameters.h"
