#include "runtime/files/other_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "ir/support/error.h"
#include "runtime/files/paths.h"

namespace lathe {

namespace {

OtherFormat git_lfs() {
  return {"a Git LFS pointer, not the file itself",
          "the repository was cloned without its large files: run `git lfs pull` in it, or download the file"};
}

OtherFormat gguf() {
  return {"a GGUF file, which Lathe does not read",
          "give the directory of the model with config.json and .safetensors files"};
}

OtherFormat pytorch() {
  return {
      "a file of PyTorch (pickle), which Lathe does not read",
      "load the model with its own library and save it with safe_serialization=True: only weights in .safetensors "
      "files are read"};
}

OtherFormat exported_graph(const char* kind) {
  return {fmt::format("{}, which holds a graph instead of a model with a configuration and a tokenizer", kind),
          "commands for graphs read it, such as lathe run; lathe finetune FILE --loss KIND:OUTPUT,TARGET trains it"};
}

OtherFormat web_page() {
  return {"an HTML page, not the file itself", "the download gave a web page: download the file again"};
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

std::optional<OtherFormat> other_format(std::string_view start) {
  if (start.starts_with("version https://git-lfs.github.com/spec/")) return git_lfs();
  if (start.starts_with("GGUF")) return gguf();
  if (start.starts_with("PK\x03\x04") || start.starts_with("\x80\x02\x8a\x0a")) return pytorch();
  const std::string text = in_lower_case(start.substr(0, 64));
  if (text.starts_with("<!doctype html") || text.starts_with("<html")) return web_page();
  return std::nullopt;
}

std::optional<OtherFormat> other_format_named(const std::string& name) {
  const std::string lower = in_lower_case(name);
  if (lower.ends_with(".gguf")) return gguf();
  for (const char* end : {".bin", ".pt", ".pth", ".ckpt"})
    if (lower.ends_with(end)) return pytorch();
  const auto other = [](const char* library) {
    return OtherFormat{fmt::format("a file of {}, which Lathe does not read", library),
                       "only weights in .safetensors files are read"};
  };
  if (lower.ends_with(".h5")) return other("TensorFlow");
  if (lower.ends_with(".msgpack")) return other("Flax");
  if (lower.ends_with(".onnx")) return exported_graph("an ONNX file");
  if (lower.ends_with(".pt2")) return exported_graph("a file of torch.export");
  return std::nullopt;
}

void reject_other_format(std::string_view start, std::string_view path) {
  if (const auto other = other_format(start))
    throw UserError(fmt::format("{} is {}", quote_path(path), other->name), "file_format", other->advice);
}

}  // namespace lathe
