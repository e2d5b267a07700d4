#pragma once

#include <string>

#include "tests/tools/command.h"

namespace lathe::test {

/// Flags of strict C99, and the features of the system that the helper headers use.
inline const std::string strict_c = "-O2 -std=c99 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -pedantic";

/// Runs a command of the shell in the scratch folder.
inline Ran run_shell(const Scratch& scratch, const std::string& command) {
  const std::string whole = "cd '" + scratch.path("") + "' && { " + command + "; } > '" + scratch.path("stdout") +
                            "' 2> '" + scratch.path("stderr") + "'";
  const int status = std::system(whole.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, scratch.read("stdout"), scratch.read("stderr")};
}

/// Same for a command that must succeed. Returns its standard output.
inline std::string shell(const Scratch& scratch, const std::string& command) {
  const Ran ran = run_shell(scratch, command);
  INFO(command << "\n" << ran.out << ran.err);
  REQUIRE(ran.status == 0);
  return ran.out;
}

/// Runs `lathe <arguments>`, which must succeed. Returns its standard output.
inline std::string lathe_output(const Scratch& scratch, const std::string& arguments) {
  const Ran ran = run_lathe(scratch, arguments);
  INFO(arguments << "\n" << ran.err);
  REQUIRE(ran.status == 0);
  return ran.out;
}

}  // namespace lathe::test
