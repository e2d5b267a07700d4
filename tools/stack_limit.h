#pragma once

namespace lathe::tools {

/// Throws UserError [stack_limit] where the limit on the stack, which the threads that compile have too, is less than
/// 256 KiB: LLVM needs some 100 KiB of it, and nothing in Lathe needs more for a larger graph.
void check_stack_limit();

}  // namespace lathe::tools
