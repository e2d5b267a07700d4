#pragma once

#include <optional>

#include "runtime/compile.h"

namespace lathe::bench {

/// A server of serve_commands() that runs one executable.
class ExecutableServer {
 public:
  explicit ExecutableServer(int threads) : threads_(threads) {}

  void run() { executable_->run(inputs_, outputs_); }

 protected:
  /// Compiles a graph, without keeping the one before.
  void open(const ir::Graph& graph, const Parameters& parameters = {}) {
    executable_.reset();
    executable_.emplace(compile(graph, {.parameters = parameters, .threads = threads_}));
  }

  int threads_;
  std::optional<Executable> executable_;
  Tensors inputs_, outputs_;
};

}  // namespace lathe::bench
