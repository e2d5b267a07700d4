#pragma once

#include <complex>
#include <cstdint>

#include "ir/support/tensors/host_tensor.h"

/// Elements of tensors as complex numbers. They are no members of HostTensor, because <complex> takes long to
/// compile.
namespace lathe {

/// Returns element i in row-major order, of any dtype. Misuse throws UserError, as in HostTensor.
std::complex<double> get_complex(const HostTensor& tensor, std::int64_t i);
/// Stores element i, converted like HostTensor::cast(). Requires a complex dtype [host_tensor_dtype].
void set_complex(HostTensor& tensor, std::int64_t i, std::complex<double> value);

}  // namespace lathe
