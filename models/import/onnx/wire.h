#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::onnx {

/// A field of a message in protobuf's wire format.
struct WireField {
  enum class Type : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  std::uint32_t number;
  Type type;
  std::uint64_t value;               ///< of a varint, fixed64 or fixed32
  std::span<const std::byte> bytes;  ///< of a length-delimited field, in the file's memory
  std::uint64_t offset;              ///< of the field in the file
};

/// Reads the fields of one message in order. Nothing is copied and nothing is allocated: fields refer to the memory
/// of the file. All errors are UserErrors [import_file] that name the file, the byte offset, the message and the
/// field.
class WireReader {
 public:
  /// Reads a whole file. `message` is the name of the message in errors, such as "ModelProto".
  WireReader(std::span<const std::byte> file, std::string_view file_name, std::string_view message)
      : WireReader(file, 0, 0, file_name, message) {}

  /// Reads the next field. Returns false at the end of the message.
  bool next(WireField& field);

  /// Returns a reader of a field that is a message. Throws for other fields, and below `max_depth` nested messages.
  WireReader nested(const WireField& field, std::string_view message) const;

  /// Return the value of a field of one kind.
  std::string_view text(const WireField& field) const;
  std::int64_t integer(const WireField& field) const;
  float real(const WireField& field) const;
  /// Append the values of a repeated field: one of them, or all of them if it is packed.
  void append_integers(const WireField& field, std::vector<std::int64_t>& to) const;
  void append_reals(const WireField& field, std::vector<float>& to) const;
  void append_doubles(const WireField& field, std::vector<double>& to) const;

  /// Throws for a field that the message does not have, or whose meaning is not supported.
  [[noreturn]] void unknown(const WireField& field) const;
  /// Throws "<file>: byte <offset>: <message>: <text>".
  [[noreturn]] void fail(std::uint64_t offset, std::string_view text) const;
  std::uint64_t start() const { return start_; }

  static constexpr int max_depth = 100;

 private:
  WireReader(std::span<const std::byte> bytes, std::uint64_t start, int depth, std::string_view file_name,
             std::string_view message)
      : bytes_(bytes), start_(start), depth_(depth), file_(file_name), message_(message) {}

  std::uint64_t varint(std::span<const std::byte> bytes, std::size_t& at, std::uint64_t start) const;
  std::uint64_t fixed(std::size_t size);
  void require(const WireField& field, WireField::Type type, std::string_view kind) const;

  std::span<const std::byte> bytes_;
  std::uint64_t start_;  ///< offset of bytes_ in the file
  std::size_t at_ = 0;
  int depth_;
  std::string_view file_, message_;
};

}  // namespace lathe::onnx
