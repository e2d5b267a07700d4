#pragma once

namespace lathe::tools {

/// Throws UserError [stack_limit] if the stack size limit is less than 256 KiB. Compiling threads have the same
/// limit. LLVM needs about 100 KiB; Lathe's own stack use does not depend on the size of the graph.
void check_stack_limit();

}  // namespace lathe::tools
