#include "runtime/files/safetensors/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/mapped_pages.h"
#include "runtime/files/other_format.h"
#include "runtime/files/safetensors/safetensors_header.h"

namespace lathe {

namespace {

/// Maps a file at first use. Writes stay private to this process.
class LazyMapping {
 public:
  std::byte* get(const FileDescriptor& file, std::uint64_t size, const std::filesystem::path& path) {
    const std::lock_guard lock(mutex_);
    if (!pages_) pages_.emplace(file, 0, size, path);
    return pages_->data();
  }

 private:
  std::mutex mutex_;
  std::optional<MappedPages> pages_;
};

struct Item {
  TensorInfo info;
  std::string_view dtype_name;
  bool supported = false;
};

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

std::uint64_t little_endian(std::span<const std::byte, 8> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return value;
}

/// Returns the header's text and sets `data_start` to its end.
std::string read_header(const FileDescriptor& file, std::uint64_t size, const std::string& path,
                        std::uint64_t& data_start) {
  std::array<std::byte, 8> prefix{};
  if (read_at(file.get(), prefix, 0) != 8)
    throw UserError(fmt::format("{}: has {} bytes, but a .safetensors file has at least 8", path, size),
                    "safetensors_header_size");
  const std::uint64_t header_bytes = little_endian(prefix);
  if (header_bytes > max_safetensors_header_bytes || size < 8 || header_bytes > size - 8) {
    std::string start(64, '\0');
    const std::int64_t count = read_at(file.get(), std::as_writable_bytes(std::span(start)), 0);
    reject_other_format(std::string_view(start).substr(0, static_cast<std::size_t>(std::max<std::int64_t>(count, 0))),
                        path);
  }
  if (header_bytes > max_safetensors_header_bytes)
    throw UserError(
        fmt::format("{}: the header has {} bytes, more than {}", path, header_bytes, max_safetensors_header_bytes),
        "safetensors_header_size", "is this a .safetensors file?");
  if (size < 8 || header_bytes > size - 8)
    throw UserError(fmt::format("{}: the header has {} bytes, but only {} follow its length", path, header_bytes,
                                size < 8 ? 0 : size - 8),
                    "safetensors_header_size", "the file may be truncated");
  std::string text(header_bytes, '\0');
  if (read_at(file.get(), std::as_writable_bytes(std::span(text)), 8) != static_cast<std::int64_t>(header_bytes))
    throw UserError(fmt::format("{}: cannot read the header of {} bytes", path, header_bytes), "safetensors_read");
  data_start = 8 + header_bytes;
  return text;
}

}  // namespace

struct SafetensorsFile::Content {
  std::filesystem::path path;
  FileDescriptor file;
  std::uint64_t size = 0, data_start = 0;
  std::vector<std::string> names;
  std::unordered_map<std::string, Item, StringHash, std::equal_to<>> items;
  std::map<std::string, std::string> metadata;
  mutable LazyMapping mapping;

  std::byte* mapped(const TensorInfo& info) const { return mapping.get(file, size, path) + data_start + info.begin; }
};

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto content = std::make_shared<Content>();
  content->path = path;
  content->file = open_regular_file(path);
  content->size = file_size(content->file, path);
  const std::string text = read_header(content->file, content->size, path.string(), content->data_start);
  SafetensorsHeader header = parse_safetensors_header(text, content->size - content->data_start, path.string());
  content->metadata = std::move(header.metadata);
  for (SafetensorsEntry& entry : header.entries) {
    Item item{.info = {entry.dtype->dtype.value_or(f32), std::move(entry.shape), entry.begin, entry.end},
              .dtype_name = entry.dtype->name,
              .supported = entry.dtype->dtype.has_value()};
    content->items.emplace(entry.name, std::move(item));
    content->names.push_back(std::move(entry.name));
  }
  return SafetensorsFile(std::move(content));
}

const std::filesystem::path& SafetensorsFile::path() const { return content_->path; }
const std::vector<std::string>& SafetensorsFile::names() const { return content_->names; }
bool SafetensorsFile::contains(std::string_view name) const { return content_->items.contains(name); }
const std::map<std::string, std::string>& SafetensorsFile::metadata() const { return content_->metadata; }

const TensorInfo& SafetensorsFile::info(std::string_view name) const {
  const auto found = content_->items.find(name);
  if (found == content_->items.end()) {
    std::string hint = fmt::format("it has {} tensors", content_->names.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(content_->names.size(), 6); ++i)
      hint += (i ? ", " : ": ") + quote(content_->names[i]);
    throw UserError(fmt::format("{}: there is no tensor {}", content_->path.string(), quote(name)),
                    "safetensors_missing", hint + (content_->names.size() > 6 ? ", ..." : ""));
  }
  if (!found->second.supported)
    throw UserError(fmt::format("{}: tensor {}: Lathe has no dtype for {}", content_->path.string(), quote(name),
                                found->second.dtype_name),
                    "safetensors_dtype", "dtypes: F64 F32 BF16 F16 I64 I32 BOOL C64 C128");
  return found->second.info;
}

HostTensor SafetensorsFile::tensor(std::string_view name) const {
  const TensorInfo& info = this->info(name);
  HostTensor tensor(info.dtype, info.shape);
  const auto size = static_cast<std::int64_t>(tensor.bytes());
  const std::span<std::byte> bytes(tensor.data(), tensor.bytes());
  const std::int64_t count = size == 0 ? 0 : read_at(content_->file.get(), bytes, content_->data_start + info.begin);
  if (count != size)
    throw UserError(fmt::format("{}: tensor {}: read {} of {} bytes", content_->path.string(), quote(name),
                                std::max<std::int64_t>(count, 0), size),
                    "safetensors_read", "the file changed while it was open, or its disk fails");
  if (info.dtype != boolean) return tensor;
  const auto flags = std::as_const(tensor).as<std::uint8_t>();
  const auto bad = std::ranges::find_if(flags, [](std::uint8_t flag) { return flag > 1; });
  if (bad != flags.end())
    throw UserError(fmt::format("{}: tensor {}: element {} of a BOOL is {}", content_->path.string(), quote(name),
                                bad - flags.begin(), *bad),
                    "safetensors_bool");
  return tensor;
}

std::span<const std::byte> SafetensorsFile::view(std::string_view name) const {
  const TensorInfo& info = this->info(name);
  if (info.begin == info.end) return {};
  return {content_->mapped(info), info.end - info.begin};
}

HostTensor SafetensorsFile::mapped(std::string_view name) const {
  const TensorInfo& info = this->info(name);
  if (info.begin == info.end || info.dtype == boolean) return tensor(name);
  // Large tensors get a separate mapping, which is unmapped with the tensor.
  constexpr std::uint64_t large = std::uint64_t{1} << 20;
  const std::uint64_t begin = content_->data_start + info.begin, end = content_->data_start + info.end;
  if (begin % size_in_bytes(info.dtype) != 0) return tensor(name);
  if (end - begin < large)
    return HostTensor::borrow_private(info.dtype, info.shape, content_->mapped(info), content_);
  const auto pages = std::make_shared<MappedPages>(content_->file, begin, end, content_->path);
  return HostTensor::borrow_private(info.dtype, info.shape, pages->data(), pages);
}

}  // namespace lathe
