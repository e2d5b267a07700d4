#pragma once

namespace lathe::codegen {

/// Whether the system lets this process use AMX's tile registers. Linux wants to be asked once before any thread
/// does; it refuses where a thread has too small a stack for signals.
bool amx_permitted();

}  // namespace lathe::codegen
