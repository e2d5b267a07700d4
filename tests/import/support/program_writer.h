#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dtype.h"

/// Writes small .pt2 files for tests.
namespace lathe::test {

/// A tensor of a program, in row-major order unless it has strides.
struct WrittenTensor {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides = {};
};

/// Arguments of a node, by the names in PyTorch's schemas.
std::string tensor_argument(std::string_view name, std::string_view value);
std::string integer_argument(std::string_view name, std::int64_t value);
std::string integers_argument(std::string_view name, const std::vector<std::int64_t>& values);
std::string real_argument(std::string_view name, double value);
std::string flag_argument(std::string_view name, bool value);
std::string text_argument(std::string_view name, std::string_view value);
std::string op_argument(std::string_view target);

/// A program of torch.export under construction.
class ProgramWriter {
 public:
  ProgramWriter& input(const WrittenTensor& tensor);
  /// Adds an input that orders effects.
  ProgramWriter& token(std::string_view name);
  /// Adds a node of ATen: "gcd" is torch.ops.aten.gcd.default. A longer target is the whole one.
  ProgramWriter& node(std::string_view target, const std::vector<std::string>& arguments,
                      const std::vector<WrittenTensor>& results);
  /// Declares outputs, which are called output_0, output_1 and so on, or output if there is one.
  ProgramWriter& outputs(const std::vector<std::string>& names);
  /// Declares an output that is a token, before others.
  ProgramWriter& token_output(std::string_view name);

  /// Writes model.pt2 to a new folder for tests. Returns its path.
  std::filesystem::path write() const;

 private:
  void add_tensor(const WrittenTensor& tensor);
  std::string inputs_, outputs_, nodes_, tensors_, input_specs_, output_specs_;
};

}  // namespace lathe::test
