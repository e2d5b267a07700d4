#pragma once

#include <exception>

namespace lathe::tools {

/// Ends a command with an exit status that is a result, such as that of `lathe diff`. Prints nothing.
class ExitStatus : public std::exception {
 public:
  explicit ExitStatus(int status) : status_(status) {}
  int status() const { return status_; }
  const char* what() const noexcept override { return "the command ended with a status"; }

 private:
  int status_;
};

}  // namespace lathe::tools
