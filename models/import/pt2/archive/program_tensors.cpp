#include "models/import/pt2/archive/program_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ir/support/error.h"
#include "models/import/pt2/program/read_arguments.h"
#include "models/import/stored/mapped_tensor.h"
#include "runtime/files/strict_json.h"

namespace lathe::pt2 {

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::string_view damaged = "the file is damaged";

struct ScalarType {
  std::int64_t number;
  std::string_view name;
  std::optional<DType> dtype;
};

constexpr ScalarType scalar_types[] = {{1, "uint8", u8},
                                       {2, "int8", i8},
                                       {3, "int16", {}},
                                       {4, "int32", i32},
                                       {5, "int64", i64},
                                       {6, "float16", f16},
                                       {7, "float32", f32},
                                       {8, "float64", f64},
                                       {9, "complex32", {}},
                                       {10, "complex64", c64},
                                       {11, "complex128", c128},
                                       {12, "bool", boolean},
                                       {13, "bfloat16", bf16},
                                       {28, "uint16", {}},
                                       {29, "float8_e4m3fn", {}},
                                       {30, "float8_e5m2", {}},
                                       {31, "float8_e4m3fnuz", {}},
                                       {32, "float8_e5m2fnuz", {}},
                                       {33, "float8_e8m0fnu", {}},
                                       {34, "uint32", {}},
                                       {35, "uint64", {}}};

/// Returns the numbers of a list of sizes.
Sizes numbers_of(const std::vector<SizeText>& sizes, const std::string& owner) {
  Sizes numbers;
  for (const SizeText& size : sizes) {
    const auto* number = std::get_if<std::int64_t>(&size);
    if (!number) throw UserError(fmt::format("{} has a size that is no number", owner), "import_file", damaged);
    numbers.push_back(*number);
  }
  return numbers;
}

bool is_contiguous(const Sizes& shape, const Sizes& strides) {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

/// Returns the number of elements from the first to the last one in the storage. Nothing for strides that no tensor
/// in `stored` elements has.
std::optional<std::uint64_t> span_of(const Sizes& shape, const Sizes& strides, std::uint64_t stored) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    const auto stride = static_cast<std::uint64_t>(strides[i]), steps = static_cast<std::uint64_t>(shape[i] - 1);
    if (strides[i] < 0 || (stride > 0 && steps > stored / stride)) return std::nullopt;
    last += steps * stride;
    if (last >= stored) return std::nullopt;
  }
  return last + 1;
}

/// Copies the elements of a strided tensor in row-major order.
HostTensor gathered(DType dtype, const Sizes& shape, const Sizes& strides, std::span<const std::byte> bytes) {
  HostTensor tensor(dtype, shape);
  const std::size_t size = size_in_bytes(dtype);
  Sizes position(shape.size(), 0);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::size_t from = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) from += static_cast<std::size_t>(position[d] * strides[d]);
    std::memcpy(tensor.data() + static_cast<std::size_t>(i) * size, bytes.data() + from * size, size);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++position[d] < shape[d]) break;
      position[d] = 0;
    }
  }
  return tensor;
}

}  // namespace

DType dtype_of(std::int64_t scalar_type, const std::string& owner) {
  const auto* found = std::ranges::find(scalar_types, scalar_type, &ScalarType::number);
  if (found != std::end(scalar_types) && found->dtype) return *found->dtype;
  throw UserError(
      fmt::format("{} has elements of type {}", owner,
                  found != std::end(scalar_types) ? std::string(found->name) : fmt::format("number {}", scalar_type)),
      "import_dtype",
      "Lathe has float64, float32, bfloat16, float16, int64, int32, int8, uint8, bool, complex64 and "
      "complex128");
}

ProgramTensors::ProgramTensors(const ZipArchive& archive, const std::string& root, const std::string& program)
    : archive_(archive) {
  read_index(root + "data/weights/", program + "_weights_config.json", program + ".pt");
  read_index(root + "data/constants/", program + "_constants_config.json", program + ".pt");
}

void ProgramTensors::read_index(const std::string& folder, const std::string& index, const std::string& legacy) {
  if (archive_.contains(folder + legacy))
    throw UserError(fmt::format("{}: the tensors of '{}' are stored by pickle, which Lathe does not read",
                                archive_.name(), folder + legacy),
                    "import_unsupported", "export the model again with torch 2.9 or newer");
  const std::string path = folder + index;
  const nlohmann::json parsed = parse_strict_json(archive_.text(path), fmt::format("{}: {}", archive_.name(), path));
  const JsonFields json(parsed, fmt::format("{}: {}:", archive_.name(), path));
  json.require_known({"config"});
  for (const auto& [name, fields] : json.at("config").members()) {
    fields.require_known({"path_name", "is_param", "use_pickle", "tensor_meta"});
    Payload payload{.entry = folder + fields.at("path_name").text(), .is_pickled = fields.at("use_pickle").boolean()};
    if (fields.has("tensor_meta")) payload.meta = read_tensor_meta(fields.at("tensor_meta"));
    if (!payloads_.emplace(name, std::move(payload)).second)
      json.fail(fmt::format("has the tensor '{}', which is a weight too", name));
  }
}

std::string ProgramTensors::owner(std::string_view name) const {
  return fmt::format("{}: the tensor '{}'", archive_.name(), name);
}

const ProgramTensors::Payload& ProgramTensors::payload(std::string_view name) const {
  const auto found = payloads_.find(name);
  if (found == payloads_.end())
    throw UserError(fmt::format("{} is not in the archive", owner(name)), "import_file", damaged);
  return found->second;
}

std::string ProgramTensors::place(std::string_view name) const {
  const Payload& found = payload(name);
  const auto list = [&](const std::vector<SizeText>& sizes) {
    return shape_to_string(numbers_of(sizes, owner(name)));
  };
  const Sizes offset = numbers_of({found.meta.offset}, owner(name));
  return fmt::format("{} {} {} {} {}", found.entry, found.meta.dtype, offset[0], list(found.meta.sizes),
                     list(found.meta.strides));
}

HostTensor ProgramTensors::read(std::string_view name) const {
  const Payload& found = payload(name);
  const std::string who = owner(name);
  if (found.is_pickled)
    throw UserError(fmt::format("{} is stored by pickle, which Lathe does not read", who), "import_unsupported",
                    "convert tensor subclasses to plain tensors before the export");
  constexpr std::int64_t strided = 7;
  if (found.meta.layout != strided)
    throw UserError(fmt::format("{} has the layout {}; strided tensors are supported", who, found.meta.layout),
                    "import_unsupported");
  const DType dtype = dtype_of(found.meta.dtype, who);
  const Sizes shape = numbers_of(found.meta.sizes, who), strides = numbers_of(found.meta.strides, who);
  const std::uint64_t count = importing::numel(shape, who), size = size_in_bytes(dtype);
  const std::int64_t offset = numbers_of({found.meta.offset}, who)[0];
  if (strides.size() != shape.size())
    throw UserError(fmt::format("{} has {} sizes and {} strides", who, shape.size(), strides.size()), "import_file",
                    damaged);
  if (count == 0) return HostTensor(dtype, shape);
  const std::span<const std::byte> bytes = archive_.read(found.entry);
  const std::uint64_t stored = bytes.size() / size;
  const auto span = offset < 0 || static_cast<std::uint64_t>(offset) >= stored
                        ? std::nullopt
                        : span_of(shape, strides, stored - static_cast<std::uint64_t>(offset));
  // Strides of 0 would make a tensor that is larger than the file.
  const bool is_larger = count > stored;
  if (!span || is_larger)
    throw UserError(fmt::format("{}, {}{} from element {}, is not in '{}', which has {} bytes", who,
                                lathe::name(dtype), shape_to_string(shape), offset, found.entry, bytes.size()),
                    "import_file", damaged);
  const auto part = bytes.subspan(static_cast<std::uint64_t>(offset) * size, *span * size);
  if (is_contiguous(shape, strides)) return importing::mapped_tensor(dtype, shape, part, archive_.mapped());
  return gathered(dtype, shape, strides, part);
}

}  // namespace lathe::pt2
