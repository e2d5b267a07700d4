#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

/// Writes small ONNX files for tests, field by field.
namespace lathe::test {

/// A message in protobuf's wire format.
class Message {
 public:
  Message& integer(int field, std::int64_t value);
  Message& text(int field, std::string_view value);
  Message& real(int field, float value);
  Message& message(int field, const Message& value) { return text(field, value.bytes); }

  std::string bytes;
};

/// A size in the shape of an input: "n", "4", or "" for an unknown size without a name.
using Sizes = std::vector<std::string>;

/// A model under construction. Element types are the numbers of the format: 1 is f32, 7 is i64.
class ModelWriter {
 public:
  explicit ModelWriter(std::int64_t opset = 18) : opset_(opset) {}

  ModelWriter& input(std::string_view name, const Sizes& sizes, std::int64_t type = 1);
  ModelWriter& output(std::string_view name);
  ModelWriter& floats(std::string_view name, const std::vector<std::int64_t>& dims, const std::vector<float>& values);
  ModelWriter& integers(std::string_view name, const std::vector<std::int64_t>& dims,
                        const std::vector<std::int64_t>& values);
  ModelWriter& initializer(const Message& tensor);
  /// Attributes are messages of attribute().
  ModelWriter& node(std::string_view name, std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {},
                    std::string_view domain = "");
  ModelWriter& function(const Message& function);
  ModelWriter& import(std::string_view domain, std::int64_t version);

  /// Returns the bytes of the file.
  std::string bytes() const;
  /// Writes the file `name` to a new folder for tests. Returns its path.
  std::filesystem::path write(std::string_view name = "model.onnx") const;

 private:
  std::int64_t opset_;
  Message graph_, imports_, functions_;
};

Message attribute(std::string_view name, std::int64_t value);
Message attribute(std::string_view name, const std::vector<std::int64_t>& values);
Message text_attribute(std::string_view name, std::string_view value);
Message graph_attribute(std::string_view name, const Message& graph);
Message node_message(std::string_view name, std::string_view op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {},
                     std::string_view domain = "");

/// Writes bytes to a file in a new folder for tests.
std::filesystem::path write_bytes(std::string_view bytes, std::string_view name);

}  // namespace lathe::test
