#include "tests/import/support/model_writer.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <fstream>

namespace lathe::test {

namespace {

void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  bytes += static_cast<char>(value);
}

void append_tag(std::string& bytes, int field, int type) {
  append_varint(bytes, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
}

/// A folder for the files of a process, removed at its end.
struct TestFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("lathe_import_" + std::to_string(::getpid()));
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// Attributes have their kind in field 20.
Message typed(Message attribute, std::int64_t kind) { return attribute.integer(20, kind); }

}  // namespace

Message& Message::integer(int field, std::int64_t value) {
  append_tag(bytes, field, 0);
  append_varint(bytes, static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::text(int field, std::string_view value) {
  append_tag(bytes, field, 2);
  append_varint(bytes, value.size());
  bytes += value;
  return *this;
}

Message& Message::real(int field, float value) {
  append_tag(bytes, field, 5);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(bits >> (8 * i));
  return *this;
}

ModelWriter& ModelWriter::input(std::string_view name, const Sizes& sizes, std::int64_t type) {
  Message shape;
  for (const std::string& size : sizes) {
    const bool is_number = !size.empty() && size.find_first_not_of("-0123456789") == std::string::npos;
    Message dim;
    if (is_number) dim.integer(1, std::stoll(size));
    if (!is_number && !size.empty()) dim.text(2, size);
    shape.message(1, dim);
  }
  const Message tensor = Message().integer(1, type).message(2, shape);
  graph_.message(11, Message().text(1, name).message(2, Message().message(1, tensor)));
  return *this;
}

ModelWriter& ModelWriter::output(std::string_view name) {
  graph_.message(12, Message().text(1, name));
  return *this;
}

ModelWriter& ModelWriter::floats(std::string_view name, const std::vector<std::int64_t>& dims,
                                 const std::vector<float>& values) {
  Message tensor;
  for (const std::int64_t dim : dims) tensor.integer(1, dim);
  tensor.integer(2, 1).text(8, name);
  for (const float value : values) tensor.real(4, value);
  return initializer(tensor);
}

ModelWriter& ModelWriter::integers(std::string_view name, const std::vector<std::int64_t>& dims,
                                   const std::vector<std::int64_t>& values) {
  Message tensor;
  for (const std::int64_t dim : dims) tensor.integer(1, dim);
  tensor.integer(2, 7).text(8, name);
  for (const std::int64_t value : values) tensor.integer(7, value);
  return initializer(tensor);
}

ModelWriter& ModelWriter::initializer(const Message& tensor) {
  graph_.message(5, tensor);
  return *this;
}

Message node_message(std::string_view name, std::string_view op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs, const std::vector<Message>& attributes,
                     std::string_view domain) {
  Message node;
  for (const std::string& input : inputs) node.text(1, input);
  for (const std::string& output : outputs) node.text(2, output);
  node.text(3, name).text(4, op);
  for (const Message& each : attributes) node.message(5, each);
  if (!domain.empty()) node.text(7, domain);
  return node;
}

ModelWriter& ModelWriter::node(std::string_view name, std::string_view op, const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs, const std::vector<Message>& attributes,
                               std::string_view domain) {
  graph_.message(1, node_message(name, op, inputs, outputs, attributes, domain));
  return *this;
}

ModelWriter& ModelWriter::function(const Message& function) {
  functions_.message(25, function);
  return *this;
}

ModelWriter& ModelWriter::import(std::string_view domain, std::int64_t version) {
  imports_.message(8, Message().text(1, domain).integer(2, version));
  return *this;
}

std::string ModelWriter::bytes() const {
  Message model;
  model.integer(1, 8).message(7, graph_).message(8, Message().integer(2, opset_));
  return model.bytes + imports_.bytes + functions_.bytes;
}

std::filesystem::path ModelWriter::write(std::string_view name) const { return write_bytes(bytes(), name); }

Message attribute(std::string_view name, std::int64_t value) {
  return typed(Message().text(1, name).integer(3, value), 2);
}
Message attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  Message message;
  message.text(1, name);
  for (const std::int64_t value : values) message.integer(8, value);
  return typed(message, 7);
}
Message text_attribute(std::string_view name, std::string_view value) {
  return typed(Message().text(1, name).text(4, value), 3);
}
Message graph_attribute(std::string_view name, const Message& graph) {
  return typed(Message().text(1, name).message(6, graph), 5);
}

std::filesystem::path write_bytes(std::string_view bytes, std::string_view name) {
  static const TestFolder all;
  static std::atomic<int> next = 0;
  const std::filesystem::path folder = all.path / std::to_string(next++);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
  return folder / name;
}

}  // namespace lathe::test
