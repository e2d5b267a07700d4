#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe {

/// Returns the constant that a stream mixes into the key: the low 32 bits of stream * 0x9E3779B9.
std::int64_t stream_salt(std::int64_t stream);

/// Emits uniform draws in [0, 1) as specified by ir/support/numbers/philox.h and ops::random_uniform: Philox 4x32-10
/// (Salmon et al. 2011) with counter {element, step} and key {seed ^ salt, seed >> 32}. `seed`, `step`, `salt` and
/// `element` are i64 scalars or vectors. Draws have as many random bits as `dtype` can represent, up to 24. The
/// result is f64 for f64 and f32 otherwise.
kernel::Value emit_uniform(kernel::Builder& b, kernel::Value seed, kernel::Value step, kernel::Value salt,
                           kernel::Value element, DType dtype);

}  // namespace lathe
