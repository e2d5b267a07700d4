#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lathe {

/// A format that files are found in where another one is expected.
struct OtherFormat {
  std::string name;    ///< "a GGUF file"
  std::string advice;  ///< how to get a file that can be read
};

/// The format of a file by its first bytes, 64 or all: a Git LFS pointer, GGUF, PyTorch's and HTML are known.
std::optional<OtherFormat> other_format(std::string_view start);

/// The same by a file's name: "pytorch_model.bin".
std::optional<OtherFormat> other_format_named(const std::string& name);

/// Throws UserError [file_format], which names the format, if the first bytes are of one of them.
void reject_other_format(std::string_view start, std::string_view path);

}  // namespace lathe
