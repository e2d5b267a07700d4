#pragma once

#include <cstdint>

#include "frontend/ops/custom_op.h"
#include "ir/tensor/op/op_set.h"

/// Libraries of custom ops that the `lathe` command loads with --ops.
namespace lathe {

/// Returns a number that changes with the interface of op libraries: Lathe's classes in it, and the C++ library.
constexpr std::uint64_t op_library_abi() {
  constexpr std::uint64_t version = 1;
  std::uint64_t abi = version;
  for (const std::uint64_t part :
       {std::uint64_t{sizeof(CustomOpRecord)}, std::uint64_t{sizeof(CustomOp)}, std::uint64_t{sizeof(ir::OpSet)},
        std::uint64_t{sizeof(ir::Node)}, std::uint64_t{sizeof(ir::InferContext)}, std::uint64_t{sizeof(HostTensor)},
        std::uint64_t{sizeof(Tensor)}, std::uint64_t{__GXX_ABI_VERSION}, std::uint64_t{sizeof(std::string)}})
    abi = abi * 1'000'003 + part;
  return abi;
}

}  // namespace lathe

/// Defines the entry of a library of custom ops, at namespace scope. `ops` is an ir::OpSet, to which the body adds
/// the ops; docs/custom-ops.md shows an example.
#define LATHE_OP_LIBRARY(ops)                                                           \
  extern "C" std::uint64_t lathe_op_library_abi() { return ::lathe::op_library_abi(); } \
  extern "C" void lathe_op_library(::lathe::ir::OpSet& ops)
