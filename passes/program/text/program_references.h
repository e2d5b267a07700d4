#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "passes/program/text/program_tokens.h"

namespace lathe::detail {

/// Buffers and kernels that a program's statements refer to, by label or number, before or after their declaration.
/// Until resolve(), statements hold the number of a buffer's first use instead of its number in the program.
class References {
 public:
  /// A launch's kernel, and the properties of the launch that the kernel must match.
  struct KernelUse {
    Token at;
    int kernel;
    Token name;
    std::size_t buffers, dims;
  };
  /// A loop or slice that refers to a launch or a loop by number.
  struct NumberUse {
    Token at;
    int number;
  };
  /// Collective::start until the number of launches is known.
  static constexpr int after_all = -1;

  explicit References(GraphTokens& in) : in_(in) {}

  /// Parses the label of a buffer. Returns the number of its first use.
  int use_buffer();
  void use_kernel(KernelUse use) { kernel_uses_.push_back(std::move(use)); }
  /// Notes the last launch of a loop, and the loop of a slice.
  void use_launch(NumberUse use) { launch_uses_.push_back(std::move(use)); }
  void use_loop(NumberUse use) { loop_uses_.push_back(std::move(use)); }
  /// Declares buffer number `number`. Throws ParseError if its label is taken.
  void declare_buffer(const Token& label, int number);

  /// Replaces the numbers of first uses by those of the declared buffers, and `after_all` by the number of launches.
  /// Throws ParseError for undeclared buffers, for launches and loops that do not exist, and for launches that do not
  /// match their kernel.
  void resolve(Program& program) const;

 private:
  std::vector<int> numbers_of_uses() const;
  void check(const Program& program, const KernelUse& use) const;
  void check(const NumberUse& use, std::size_t count, std::string_view what) const;

  GraphTokens& in_;
  std::unordered_map<std::string, int> uses_;  ///< by label: the number of its first use
  std::vector<Token> first_uses_;
  std::unordered_map<std::string, int> declared_;  ///< by label: the buffer
  std::vector<KernelUse> kernel_uses_;
  std::vector<NumberUse> launch_uses_, loop_uses_;
};

}  // namespace lathe::detail
