#include "runtime/files/npz/npz.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/npz/npy_header.h"
#include "runtime/files/write/atomic_file.h"
#include "runtime/files/zip/zip_archive.h"
#include "runtime/files/zip/zip_writer.h"

namespace lathe {

namespace {

constexpr std::string_view extension = ".npy";

constexpr ZipErrors npz_errors{.damaged = "npz_archive",
                               .unsupported = "npz_form",
                               .origin = "the file is damaged, or numpy.savez() has not written it",
                               .form = "write the file by numpy.savez() or numpy.savez_compressed()"};

/// Returns the number of bytes of a tensor; nothing if no tensor has this shape.
std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  constexpr std::size_t most_dims = 32;
  std::uint64_t product = size_in_bytes(dtype);
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    is_empty = is_empty || size == 0;
    if (size > 0 && product > most / static_cast<std::uint64_t>(size)) return std::nullopt;
    product *= static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
  }
  if (shape.size() > most_dims) return std::nullopt;
  return is_empty ? 0 : product;
}

/// Copies elements whose first dim varies fastest to row-major order.
void copy_reordered(std::span<const std::byte> from, HostTensor& to) {
  const std::size_t size = size_in_bytes(to.dtype());
  const std::vector<std::int64_t>& shape = to.shape();
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::int64_t i = 0; i < to.numel(); ++i) {
    std::int64_t at = 0;
    for (std::size_t d = shape.size(); d-- > 0;) at = at * shape[d] + index[d];
    std::memcpy(to.data() + static_cast<std::size_t>(i) * size, from.data() + static_cast<std::size_t>(at) * size,
                size);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

void require_bools(std::span<const std::byte> bytes, const std::string& owner) {
  if (std::ranges::any_of(bytes, [](std::byte byte) { return byte > std::byte(1); }))
    throw UserError(fmt::format("{} has a bool that is neither 0 nor 1", owner), "npz_bool");
}

}  // namespace

NpzFile NpzFile::open(const std::filesystem::path& path) {
  auto archive = std::make_shared<const ZipArchive>(path, npz_errors);
  for (const std::string& name : archive->names())
    if (!name.ends_with(extension))
      throw UserError(fmt::format("{}: the file {} in the archive is no array", archive->name(), quote(name)),
                      "npz_archive", npz_errors.origin);
  return NpzFile(std::move(archive));
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> all = archive_->names();
  for (std::string& name : all) name.resize(name.size() - extension.size());
  return all;
}

bool NpzFile::contains(std::string_view name) const {
  return archive_->contains(std::string(name) + std::string(extension));
}

HostTensor NpzFile::tensor(std::string_view name) const {
  const std::string owner = fmt::format("{}: the array {}", archive_->name(), quote(name));
  const std::vector<std::byte> file = archive_->extract(std::string(name) + std::string(extension));
  const NpyHeader header = read_npy_header(file, owner);
  const std::span<const std::byte> elements = std::span(file).subspan(header.size);
  const auto wanted = bytes_of(header.dtype, header.shape);
  if (!wanted || *wanted != elements.size())
    throw UserError(fmt::format("{} has {} bytes for {}{}", owner, elements.size(), lathe::name(header.dtype),
                                shape_to_string(header.shape)),
                    "npz_size", npz_errors.origin);
  if (header.dtype == boolean) require_bools(elements, owner);
  HostTensor tensor(header.dtype, header.shape);
  if (header.is_column_major)
    copy_reordered(elements, tensor);
  else if (!elements.empty())
    std::memcpy(tensor.data(), elements.data(), elements.size());
  return tensor;
}

WrittenFile write_npz(const std::filesystem::path& path, const Tensors& tensors) {
  std::vector<std::string> headers;  // throws before the file is changed
  for (const auto& [name, tensor] : tensors) {
    const std::string owner = fmt::format("{}: the array {}", path.string(), quote(name));
    if (name.size() + extension.size() > std::numeric_limits<std::uint16_t>::max())
      throw UserError(fmt::format("{} has a name of {} bytes", owner, name.size()), "npz_name");
    headers.push_back(npy_header(tensor.dtype(), tensor.shape(), owner));
  }
  AtomicFile file(path);
  ZipWriter zip(file);
  std::size_t i = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::span<const std::byte> elements(tensor.data(), tensor.bytes());
    zip.add(name + std::string(extension), {std::as_bytes(std::span(headers[i++])), elements});
  }
  zip.finish();
  return file.commit();
}

}  // namespace lathe
