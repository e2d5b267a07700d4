#include "models/export/onnx/wire_writer.h"

#include <bit>
#include <cstring>

namespace lathe::onnx {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers in files are little-endian");

constexpr unsigned varint_type = 0, bytes_type = 2, fixed32_type = 5;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void WireMessage::append(std::string_view bytes) {
  if (bytes.empty()) return;
  if (parts_.empty() || !parts_.back().referred.empty()) parts_.emplace_back();
  parts_.back().own += bytes;
  size_ += bytes.size();
}

void WireMessage::varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  append(bytes + static_cast<char>(value));
}

void WireMessage::start(std::uint32_t field, unsigned wire_type) { varint(field << 3 | wire_type); }

WireMessage& WireMessage::integer(std::uint32_t field, std::int64_t value) {
  start(field, varint_type);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

WireMessage& WireMessage::real(std::uint32_t field, float value) {
  start(field, fixed32_type);
  append(text_of(std::as_bytes(std::span(&value, 1))));
  return *this;
}

WireMessage& WireMessage::text(std::uint32_t field, std::string_view value) {
  start(field, bytes_type);
  varint(value.size());
  append(value);
  return *this;
}

WireMessage& WireMessage::given_text(std::uint32_t field, std::string_view value) {
  return value.empty() ? *this : text(field, value);
}

WireMessage& WireMessage::integers(std::uint32_t field, std::span<const std::int64_t> values) {
  if (values.empty()) return *this;
  WireMessage list;
  for (const std::int64_t value : values) list.varint(static_cast<std::uint64_t>(value));
  return message(field, list);
}

void WireMessage::packed(std::uint32_t field, std::span<const std::byte> values) {
  if (!values.empty()) text(field, text_of(values));
}
WireMessage& WireMessage::reals(std::uint32_t field, std::span<const float> values) {
  packed(field, std::as_bytes(values));
  return *this;
}
WireMessage& WireMessage::doubles(std::uint32_t field, std::span<const double> values) {
  packed(field, std::as_bytes(values));
  return *this;
}

WireMessage& WireMessage::bytes(std::uint32_t field, std::span<const std::byte> value) {
  start(field, bytes_type);
  varint(value.size());
  if (value.empty()) return *this;
  parts_.push_back({{}, value});
  size_ += value.size();
  return *this;
}

WireMessage& WireMessage::message(std::uint32_t field, const WireMessage& value) {
  start(field, bytes_type);
  varint(value.size());
  for (const Part& part : value.parts_) {
    if (part.referred.empty()) {
      append(part.own);
    } else {
      parts_.push_back(part);
      size_ += part.referred.size();
    }
  }
  return *this;
}

}  // namespace lathe::onnx
