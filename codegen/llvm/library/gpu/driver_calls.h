#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/library/call_layout.h"

namespace lathe::codegen {

/// The functions of the CUDA driver that libraries call, in the order of the members of lathe_cuda, in words.
enum class DriverFunction : int {
  context_device,      ///< cuCtxGetDevice
  device_attribute,    ///< cuDeviceGetAttribute
  load_module,         ///< cuModuleLoadData
  unload_module,       ///< cuModuleUnload
  find_function,       ///< cuModuleGetFunction
  set_function,        ///< cuFuncSetAttribute
  copy,                ///< cuMemcpyAsync
  fill,                ///< cuMemsetD8Async
  synchronize,         ///< cuStreamSynchronize
  encode,              ///< cuTensorMapEncodeTiled
  launch,              ///< cuLaunchKernel
  resident_blocks,     ///< cuOccupancyMaxActiveBlocksPerMultiprocessor
  launch_cooperative,  ///< cuLaunchCooperativeKernel
};

/// Emits a load of the pointer to the driver's functions, which an initialised library has.
llvm::Value* driver_functions(llvm::IRBuilder<>& b, llvm::Value* library);

/// Emits a call of the driver. Returns its error: 0, or the driver's number, negated.
llvm::Value* call_driver(llvm::IRBuilder<>& b, llvm::Value* functions, DriverFunction which,
                         llvm::ArrayRef<llvm::Value*> arguments);

}  // namespace lathe::codegen
