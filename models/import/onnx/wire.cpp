#include "models/import/onnx/wire.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "ir/support/error.h"

namespace lathe::onnx {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers in files are little-endian");

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

}  // namespace

void WireReader::fail(std::uint64_t offset, std::string_view text) const {
  throw UserError(fmt::format("{}: byte {}: {}: {}", file_, offset, message_, text), "import_file",
                  "the file is damaged or is not an ONNX model");
}

std::uint64_t WireReader::varint(std::span<const std::byte> bytes, std::size_t& at, std::uint64_t start) const {
  const std::size_t first = at;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at == bytes.size()) fail(start + first, "a number ends after the message");
    const auto byte = std::to_integer<std::uint64_t>(bytes[at++]);
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail(start + first, "a number has more than 64 bits");
}

std::uint64_t WireReader::fixed(std::size_t size) {
  if (bytes_.size() - at_ < size) fail(start_ + at_, "a number ends after the message");
  const std::uint64_t value =
      size == 8 ? number_at<std::uint64_t>(bytes_, at_) : number_at<std::uint32_t>(bytes_, at_);
  at_ += size;
  return value;
}

bool WireReader::next(WireField& field) {
  if (at_ == bytes_.size()) return false;
  field = {.number = 0, .type = WireField::Type::varint, .value = 0, .bytes = {}, .offset = start_ + at_};
  const std::uint64_t tag = varint(bytes_, at_, start_), number = tag >> 3;
  if (number == 0 || number >= std::uint64_t{1} << 29)
    fail(field.offset, fmt::format("{} is not the number of a field", number));
  field.number = static_cast<std::uint32_t>(number);
  switch (tag & 7) {
    case 0: field.value = varint(bytes_, at_, start_); break;
    case 1:
      field.type = WireField::Type::fixed64;
      field.value = fixed(8);
      break;
    case 2: {
      field.type = WireField::Type::bytes;
      const std::uint64_t size = varint(bytes_, at_, start_);
      if (size > bytes_.size() - at_)
        fail(field.offset,
             fmt::format("field {} has {} bytes, and the message has {} left", number, size, bytes_.size() - at_));
      field.bytes = bytes_.subspan(at_, size);
      at_ += size;
      break;
    }
    case 5:
      field.type = WireField::Type::fixed32;
      field.value = fixed(4);
      break;
    default: fail(field.offset, fmt::format("field {} has the wire type {}", number, tag & 7));
  }
  return true;
}

void WireReader::require(const WireField& field, WireField::Type type, std::string_view kind) const {
  if (field.type != type) fail(field.offset, fmt::format("field {} is not {}", field.number, kind));
}

WireReader WireReader::nested(const WireField& field, std::string_view message) const {
  require(field, WireField::Type::bytes, "a message");
  if (depth_ >= max_depth) fail(field.offset, fmt::format("there are more than {} nested messages", max_depth));
  const auto start = start_ + static_cast<std::uint64_t>(field.bytes.data() - bytes_.data());
  return {field.bytes, start, depth_ + 1, file_, message};
}

std::string_view WireReader::text(const WireField& field) const {
  require(field, WireField::Type::bytes, "a text");
  return {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()};
}

std::int64_t WireReader::integer(const WireField& field) const {
  require(field, WireField::Type::varint, "an integer");
  return static_cast<std::int64_t>(field.value);
}

float WireReader::real(const WireField& field) const {
  require(field, WireField::Type::fixed32, "an f32");
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
}

void WireReader::append_integers(const WireField& field, std::vector<std::int64_t>& to) const {
  if (field.type != WireField::Type::bytes) return to.push_back(integer(field));
  const auto start = start_ + static_cast<std::uint64_t>(field.bytes.data() - bytes_.data());
  for (std::size_t at = 0; at < field.bytes.size();)
    to.push_back(static_cast<std::int64_t>(varint(field.bytes, at, start)));
}

void WireReader::append_reals(const WireField& field, std::vector<float>& to) const {
  if (field.type != WireField::Type::bytes) return to.push_back(real(field));
  if (field.bytes.size() % sizeof(float) != 0)
    fail(field.offset, fmt::format("field {} has {} bytes of f32 numbers", field.number, field.bytes.size()));
  for (std::size_t at = 0; at < field.bytes.size(); at += sizeof(float))
    to.push_back(number_at<float>(field.bytes, at));
}

void WireReader::append_doubles(const WireField& field, std::vector<double>& to) const {
  if (field.type == WireField::Type::fixed64) return to.push_back(std::bit_cast<double>(field.value));
  require(field, WireField::Type::bytes, "an f64");
  if (field.bytes.size() % sizeof(double) != 0)
    fail(field.offset, fmt::format("field {} has {} bytes of f64 numbers", field.number, field.bytes.size()));
  for (std::size_t at = 0; at < field.bytes.size(); at += sizeof(double))
    to.push_back(number_at<double>(field.bytes, at));
}

void WireReader::unknown(const WireField& field) const {
  fail(field.offset, fmt::format("field {} is unknown or not supported", field.number));
}

}  // namespace lathe::onnx
