#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lathe {

/// A known file format other than the expected one.
struct OtherFormat {
  std::string name;    ///< "a GGUF file"
  std::string advice;  ///< how to get a supported file
};

/// Returns the format of a file by its first 64 bytes (or all): Git LFS pointers, GGUF, PyTorch and HTML.
std::optional<OtherFormat> other_format(std::string_view start);

/// Returns the format by a file's name: "pytorch_model.bin".
std::optional<OtherFormat> other_format_named(const std::string& name);

/// Throws UserError [file_format] with the format's name if the first bytes are those of a known format.
void reject_other_format(std::string_view start, std::string_view path);

}  // namespace lathe
