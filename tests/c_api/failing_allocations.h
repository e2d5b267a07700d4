#pragma once

namespace lathe::test {

/// Lets this thread's next `count` allocations by operator new succeed, and all others fail; negative: none fails.
void set_allocations_left(long count);

}  // namespace lathe::test
