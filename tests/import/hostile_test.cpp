#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <random>

#include "ir/support/error.h"
#include "models/import/import.h"
#include "tests/import/support/model_writer.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;

namespace {

std::string model_bytes(const std::string& name) {
  std::ifstream file(test_data("import/data/" + name + "/model.onnx"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file that is written again and again.
class Target {
 public:
  /// Returns whether the bytes import. Any exception but a UserError ends the test.
  bool imports(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    try {
      importing::import_graph(path_);
      return true;
    } catch (const UserError&) {
      return false;
    }
  }

 private:
  std::filesystem::path path_ = write_bytes("", "model.onnx");
};

/// Changes some bytes, or moves, removes or repeats a part.
std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(bytes.size()), size = std::min(1 + below(16), bytes.size() - at);
    switch (below(5)) {
      case 0: bytes[at] = static_cast<char>(below(256)); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes.erase(at, std::min(size, bytes.size() - 1)); break;
      case 3: bytes.insert(at, bytes.substr(below(bytes.size()), size)); break;
      default: bytes.replace(at, size, size, static_cast<char>(0xff)); break;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("hostile: a file that ends at any byte is an error or a smaller model") {
  Target target;
  const std::string bytes = model_bytes("external");
  CHECK(!target.imports(""));
  for (std::size_t size = 1; size < bytes.size(); ++size) target.imports(bytes.substr(0, size));
  const std::string large = model_bytes("llama");
  for (std::size_t size = 1; size < large.size(); size += 37) target.imports(large.substr(0, size));
}

TEST_CASE("hostile: damaged files end in errors") {
  Target target;
  std::mt19937 random(1);
  std::size_t refused = 0, count = 0;
  for (const char* name : {"bert", "gpt2", "vit", "llama", "external", "group_query", "strides"}) {
    const std::string bytes = model_bytes(name);
    for (int i = 0; i < 400; ++i, ++count) refused += target.imports(mutated(bytes, random)) ? 0 : 1;
  }
  CHECK(refused > count / 4);
}

TEST_CASE("hostile: sizes far above the file's are errors before memory is taken") {
  Target target;
  const auto with_dims = [](const std::vector<std::int64_t>& dims) {
    return ModelWriter()
        .floats("w", dims, {1, 2})
        .input("x", {"2"})
        .node("", "Add", {"x", "w"}, {"y"})
        .output("y")
        .bytes();
  };
  CHECK(target.imports(with_dims({2})));
  for (const std::vector<std::int64_t>& dims : std::vector<std::vector<std::int64_t>>{
           {std::int64_t{1} << 40}, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {-2}, {0}, {2, 0}, {3}})
    CHECK(!target.imports(with_dims(dims)));
  // A message that claims more bytes than the file has.
  CHECK(!target.imports(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)));
}

TEST_CASE("hostile: nested messages have a depth limit") {
  Target target;
  Message graph;
  for (int i = 0; i < 200; ++i) {
    Message outer;
    outer.message(1, node_message("", "If", {"c"}, {"r"}, {graph_attribute("then_branch", graph)}));
    graph = outer;
  }
  CHECK(!target.imports(Message().message(7, graph).bytes));
}
