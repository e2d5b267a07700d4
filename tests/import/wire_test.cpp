#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "models/import/onnx/wire.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using onnx::WireField;
using onnx::WireReader;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string error_of(const std::string& bytes) {
  try {
    WireReader in(bytes_of(bytes), "f.onnx", "M");
    for (WireField field; in.next(field);) {
    }
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("wire: numbers of all sizes, signs and kinds") {
  Message message;
  message.integer(1, 0).integer(1, 300).integer(1, -1).integer(536870911, 7).real(2, -0.5F).text(3, "ab");
  WireReader in(bytes_of(message.bytes), "f.onnx", "M");
  WireField field;
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 4; ++i) {
    CHECK(in.next(field));
    in.append_integers(field, numbers);
  }
  CHECK(numbers == std::vector<std::int64_t>{0, 300, -1, 7});
  CHECK(field.number == 536870911);
  CHECK(in.next(field));
  CHECK(in.real(field) == -0.5F);
  CHECK(in.next(field));
  CHECK(in.text(field) == "ab");
  CHECK(!in.next(field));
}

TEST_CASE("wire: packed numbers are appended like single ones") {
  const std::string bytes("\x0a\x03\x05\xac\x02\x08\x07", 7);
  WireReader in(bytes_of(bytes), "f.onnx", "M");
  std::vector<std::int64_t> numbers;
  for (WireField field; in.next(field);) in.append_integers(field, numbers);
  CHECK(numbers == std::vector<std::int64_t>{5, 300, 7});
}

TEST_CASE("wire: errors name the file, the byte, the message and the field") {
  CHECK(error_of(std::string("\x08\x01\x12\x05"
                             "ab",
                             6)) ==
        "f.onnx: byte 2: M: field 2 has 5 bytes, and the message has 2 left  [import_file]\n"
        "  the file is damaged or is not an ONNX model");
  CHECK(error_of("\x08\x80").starts_with("f.onnx: byte 1: M: a number ends after the message"));
  CHECK(error_of("\x08" + std::string(10, '\xff')).starts_with("f.onnx: byte 1: M: a number has more than 64 bits"));
  CHECK(error_of(std::string(1, '\0')).starts_with("f.onnx: byte 0: M: 0 is not the number of a field"));
  CHECK(error_of("\x0b").starts_with("f.onnx: byte 0: M: field 1 has the wire type 3"));
  CHECK(error_of("\x0d\x01").starts_with("f.onnx: byte 1: M: a number ends after the message"));
}
