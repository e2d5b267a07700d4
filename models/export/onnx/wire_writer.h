#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::onnx {

/// A message in protobuf's wire format, written field by field. The bytes of tensors are referred to and not copied:
/// their memory must outlive the message.
class WireMessage {
 public:
  WireMessage& integer(std::uint32_t field, std::int64_t value);
  WireMessage& real(std::uint32_t field, float value);
  WireMessage& text(std::uint32_t field, std::string_view value);
  /// A text, unless it is empty.
  WireMessage& given_text(std::uint32_t field, std::string_view value);
  /// Repeated fields, packed; no field for an empty list.
  WireMessage& integers(std::uint32_t field, std::span<const std::int64_t> values);
  WireMessage& reals(std::uint32_t field, std::span<const float> values);
  WireMessage& doubles(std::uint32_t field, std::span<const double> values);
  /// Bytes that are not copied.
  WireMessage& bytes(std::uint32_t field, std::span<const std::byte> value);
  WireMessage& message(std::uint32_t field, const WireMessage& value);

  /// Returns the number of bytes of the message.
  std::uint64_t size() const { return size_; }
  /// Calls write(bytes) for the parts of the message, in order.
  template <class Write>
  void each_part(const Write& write) const {
    for (const Part& part : parts_) write(part.referred.empty() ? std::as_bytes(std::span(part.own)) : part.referred);
  }

 private:
  /// Bytes of the message: either its own, or in other memory.
  struct Part {
    std::string own;
    std::span<const std::byte> referred;
  };

  void append(std::string_view bytes);
  void start(std::uint32_t field, unsigned wire_type);
  void varint(std::uint64_t value);
  void packed(std::uint32_t field, std::span<const std::byte> values);

  std::vector<Part> parts_;
  std::uint64_t size_ = 0;
};

}  // namespace lathe::onnx
