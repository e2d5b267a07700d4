#include "runtime/cpu/library/cpu_header.h"

#include <fmt/core.h>

#include "runtime/library/c_names.h"

namespace lathe {

std::string CpuHeader::rules() const {
  return "   The caller owns all memory and all threads. No function allocates memory or has global state: calls "
         "with\n"
         "   different memory may run at the same time. Tensors are dense and row-major, aligned to their elements.";
}

std::string CpuHeader::shared_types() const {
  return R"(#ifndef LATHE_WORKERS
#define LATHE_WORKERS
/* Threads of the caller. parallel_for(context, count, task, argument) calls task(argument, i, worker) once for each i
   in [0, count), in any order, and returns when all calls have returned. `worker` is in [0, lathe_workers.count), and
   differs between calls that run at the same time. lathe_pool.h has such a function. */
typedef struct lathe_workers {
  void (*parallel_for)(void *context, int64_t count, void (*task)(void *argument, int64_t i, int32_t worker),
                       void *argument);
  void *context;
  int32_t count;
} lathe_workers;
#endif

)";
}

std::string CpuHeader::instance_members() const {
  return fmt::format("  int32_t level; /* the CPU level that calls use: {} */\n", c_levels(plan_.targets));
}

std::string CpuHeader::call_members() const {
  return "  const lathe_workers *workers; /* null: the calling thread alone */\n";
}

std::string CpuHeader::init_comment() const { return "Chooses the code for this CPU"; }

std::string CpuHeader::workspace_function() const {
  return fmt::format(
      "/* Returns the bytes of workspace that calls need with this number of workers (1 without workers), or -1 if\n"
      "   the library is not initialised. */\nint64_t {0}_workspace_bytes(const {0} *library, int32_t workers);\n\n",
      p_);
}

std::string CpuHeader::run_functions(const std::string& name, const std::string& graph) const {
  return fmt::format(
      "/* The same, then runs @{2}. After an error in the run, outputs and updated states have unspecified values. "
      "*/\n"
      "int32_t {0}_run(const {1} *library, const {0}_call *call);\n\n",
      name, p_, graph);
}

}  // namespace lathe
