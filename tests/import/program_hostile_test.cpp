#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <random>

#include "ir/support/error.h"
#include "models/import/import.h"
#include "tests/import/support/archive_writer.h"
#include "tests/import/support/model_writer.h"
#include "tests/import/support/program_case.h"

using namespace lathe;
using namespace lathe::test;

namespace {

std::string file_bytes(const std::string& program) {
  std::ifstream file(program_folder(program) / "model.pt2", std::ios::binary);
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
  std::filesystem::path path_ = write_bytes("", "model.pt2");
};

class Mutator {
 public:
  /// Changes some bytes, or moves, removes or repeats a part.
  std::string bytes(std::string bytes) {
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

  /// Changes JSON so that it stays JSON: numbers, names and ops take the place of others.
  std::string json(std::string text) {
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const auto [to, to_size] = token(text);
      const std::string other = text.substr(to, to_size);
      const auto [from, from_size] = token(text);
      const bool is_number = text[from] != '"';
      const std::string number =
          std::vector<std::string>{"0", "-1", "7", "1099511627776", "9223372036854775807"}[below(5)];
      text.replace(from, from_size, is_number && below(2) == 0 ? number : other);
    }
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  /// Returns the place and the size of a value in the text: a number or a text that is no key.
  std::pair<std::size_t, std::size_t> token(const std::string& text) {
    for (;;) {
      const std::size_t key_end = text.find("\":", below(text.size()));
      if (key_end == std::string::npos) continue;
      const std::size_t start = text.find_first_not_of(' ', key_end + 2);
      const std::size_t end = text[start] == '"' ? text.find('"', start + 1) + 1 : text.find_first_of(",}]", start);
      const bool is_value = text[start] == '"' || text[start] == '-' || (text[start] >= '0' && text[start] <= '9');
      if (is_value && end != std::string::npos && end > start) return {start, end - start};
    }
  }

  std::mt19937 random_{1};
};

}  // namespace

TEST_CASE("program hostile: a file that ends at any byte is an error") {
  Target target;
  const std::string bytes = file_bytes("counter");
  CHECK(target.imports(bytes));
  for (std::size_t size = 0; size < bytes.size(); size += 13) CHECK(!target.imports(bytes.substr(0, size)));
}

TEST_CASE("program hostile: damaged archives end in errors") {
  Target target;
  Mutator mutator;
  std::size_t refused = 0, count = 0;
  for (const char* name : {"mlp", "counter", "cnn_core", "control"}) {
    const std::string bytes = file_bytes(name);
    for (int i = 0; i < 300; ++i, ++count) refused += target.imports(mutator.bytes(bytes)) ? 0 : 1;
  }
  CHECK(refused > count / 4);
}

TEST_CASE("program hostile: archives with damaged directories end in errors") {
  Target target;
  Mutator mutator;
  for (const bool is_zip64 : {false, true}) {
    const std::string bytes = ProgramFile("counter").bytes({.is_zip64 = is_zip64});
    CHECK(target.imports(bytes));
    const std::size_t directory = bytes.find("PK\x01\x02");
    for (int i = 0; i < 300; ++i) target.imports(bytes.substr(0, directory) + mutator.bytes(bytes.substr(directory)));
  }
}

TEST_CASE("program hostile: programs with other values and names end in errors") {
  Target target;
  Mutator mutator;
  std::size_t refused = 0, count = 0;
  for (const char* name : {"mlp", "gpt", "llama", "encoder", "cnn_core", "elementwise", "layout", "networks",
                           "control", "written", "strided", "quotients", "sliced"}) {
    ProgramFile file(name);
    const std::string text = file.at("models/model.json");
    for (int i = 0; i < 60; ++i, ++count) {
      const std::string changed = mutator.json(text);
      refused += target.imports(file.set("models/model.json", changed).bytes()) ? 0 : 1;
    }
  }
  CHECK(refused > count / 8);
}
