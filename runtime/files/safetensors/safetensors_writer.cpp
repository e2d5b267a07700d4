#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/files/safetensors/safetensors_header.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe {

namespace {

/// Returns a JSON string. Throws UserError [safetensors_field] if the text is not UTF-8.
std::string json_string(const std::string& path, const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw UserError(fmt::format("{}: {} is not UTF-8", path, quote(text)), "safetensors_field");
  }
}

void check(const std::string& path, std::span<const TensorView> tensors) {
  std::unordered_set<std::string_view> names;
  if (tensors.size() > max_safetensors_tensors)
    throw UserError(fmt::format("{}: {} tensors are more than {}", path, tensors.size(), max_safetensors_tensors),
                    "safetensors_limit");
  for (const TensorView& tensor : tensors) {
    const std::string name = quote(tensor.name);
    if (!names.insert(tensor.name).second)
      throw UserError(fmt::format("{}: two tensors are called {}", path, name), "safetensors_duplicate");
    if (tensor.name == safetensors_metadata_key)
      throw UserError(fmt::format("{}: the name {} is reserved", path, name), "safetensors_field");
    if (tensor.name.size() > max_safetensors_name_bytes || tensor.shape.size() > max_safetensors_rank)
      throw UserError(
          fmt::format("{}: tensor {} has a name of {} bytes and rank {}; the limits are {} and {}", path, name,
                      tensor.name.size(), tensor.shape.size(), max_safetensors_name_bytes, max_safetensors_rank),
          "safetensors_limit");
  }
}

std::uint64_t bytes_of(const TensorView& tensor) {
  return static_cast<std::uint64_t>(count_elements(tensor.shape)) * size_in_bytes(tensor.dtype);
}

std::string make_header(const std::string& path, const std::vector<const TensorView*>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto separate = [&] { text += text.back() == '{' ? "" : ","; };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      separate();
      text += json_string(path, key) + ":" + json_string(path, value);
    }
    text += "}";
  }
  std::uint64_t offset = 0;
  for (const TensorView* tensor : tensors) {
    std::string dims;
    for (const std::int64_t dim : tensor->shape) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    const std::uint64_t end = offset + bytes_of(*tensor);
    separate();
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json_string(path, tensor->name), safetensors_dtype(tensor->dtype).name, dims, offset, end);
    offset = end;
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > max_safetensors_header_bytes)
    throw UserError(
        fmt::format("{}: the header has {} bytes, more than {}", path, text.size(), max_safetensors_header_bytes),
        "safetensors_limit");
  return text;
}

struct SafetensorsLayout {
  std::vector<const TensorView*> order;
  std::string header;
};

SafetensorsLayout layout_of(const std::string& path, std::span<const TensorView> tensors,
                            const std::map<std::string, std::string>& metadata) {
  check(path, tensors);
  SafetensorsLayout layout;
  for (const std::size_t bytes : {16, 8, 4, 2, 1})
    for (const TensorView& tensor : tensors)
      if (size_in_bytes(tensor.dtype) == bytes) layout.order.push_back(&tensor);
  layout.header = make_header(path, layout.order, metadata);
  return layout;
}

/// Returns the size of the header as 8 bytes, then the header.
std::string start_of_file(const SafetensorsLayout& layout) {
  std::string start;
  for (std::size_t i = 0; i < 8; ++i) start += static_cast<char>(layout.header.size() >> (8 * i));
  return start + layout.header;
}

void write_layout(AtomicFile& file, const SafetensorsLayout& layout) {
  file.write(start_of_file(layout));
  for (const TensorView* tensor : layout.order) file.write(std::span(tensor->data, bytes_of(*tensor)));
}

}  // namespace

TensorView view_of(std::string name, const HostTensor& tensor) {
  return {std::move(name), tensor.dtype(), tensor.shape(), tensor.data()};
}

std::string safetensors_header(std::span<const TensorView> tensors) {
  return start_of_file(layout_of("safetensors", tensors, {}));
}

void write_safetensors(AtomicFile& file, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_layout(file, layout_of(file.path().string(), tensors, metadata));
}

WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata) {
  const SafetensorsLayout layout = layout_of(path.string(), tensors, metadata);  // throws before the file is changed
  AtomicFile file(path);
  write_layout(file, layout);
  return file.commit();
}

WrittenFile write_safetensors(const std::filesystem::path& path, const Tensors& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) views.push_back(view_of(name, tensor));
  return write_safetensors(path, views, metadata);
}

}  // namespace lathe
