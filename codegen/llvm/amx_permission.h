#pragma once

namespace lathe::codegen {

/// Returns whether the system lets this process use AMX's tile registers. Linux requires a request before any thread
/// uses them, and refuses it if a thread's signal stack is too small.
bool amx_permitted();

}  // namespace lathe::codegen
