#include "runtime/files/safetensors/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "runtime/files/safetensors/safetensors_header.h"
#include "runtime/files/sha256.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;

namespace {

std::string encode(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

/// Returns the error of opening a file with this header and number of data bytes.
Failure open_failure(const std::string& header, std::size_t data_bytes) {
  const ScratchFolder folder;
  spit(folder / "m.safetensors", encode(header, std::string(data_bytes, '\0')));
  return failure_of([&] { SafetensorsFile::open(folder / "m.safetensors"); });
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

Tensors one_of_each_dtype() {
  Tensors tensors;
  for (const DType dtype : all_dtypes) {
    HostTensor tensor(dtype, {2, 3});
    for (std::int64_t i = 0; i < 6; ++i) tensor.set(i, static_cast<double>(i) - 2.5);
    tensors.emplace("t." + std::string(name(dtype)), tensor);
  }
  tensors.emplace("empty", HostTensor(f32, {4, 0}));
  tensors.emplace("scalar", HostTensor::scalar(3, f64));
  return tensors;
}

}  // namespace

TEST_CASE("safetensors: a written file reads back, for every dtype") {
  const ScratchFolder folder;
  const auto tensors = one_of_each_dtype();
  const auto written = write_safetensors(folder / "m.safetensors", tensors, {{"note", "a \"b\" \n \u00fc"}});
  CHECK(written.size == std::filesystem::file_size(folder / "m.safetensors"));
  CHECK(to_hex(written.sha256) == sha256_hex(slurp(folder / "m.safetensors")));

  const SafetensorsFile file = SafetensorsFile::open(folder / "m.safetensors");
  CHECK(file.names().size() == tensors.size());
  CHECK(file.metadata().at("note") == "a \"b\" \n \u00fc");
  for (const auto& [name, tensor] : tensors) {
    CHECK(file.tensor(name).same_bits(tensor));
    const auto view = file.view(name);
    CHECK(view.size() == tensor.bytes());
    CHECK((view.empty() || std::memcmp(view.data(), tensor.data(), view.size()) == 0));
    CHECK(file.info(name).begin % size_in_bytes(tensor.dtype()) == 0);
  }
  const auto missing = failure_of([&] { (void)file.tensor("t.f23"); });
  CHECK(missing.label == "safetensors_missing");
  CHECK_THAT(missing.text, Contains("'t.f23'") && Contains("m.safetensors"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("safetensors: the bytes match the format") {
  const ScratchFolder folder;
  write_safetensors(folder / "m", {{"w", HostTensor::from({2}, {1, 2}, f32)}});
  const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(slurp(folder / "m") == encode(padded, std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
}

TEST_CASE("safetensors: the golden files open") {
  int files = 0;
  for (const auto& item : std::filesystem::directory_iterator(test::test_data("goldens"))) {
    if (item.path().extension() != ".safetensors") continue;
    const SafetensorsFile file = SafetensorsFile::open(item.path());
    for (const std::string& name : file.names()) CHECK(file.tensor(name).numel() >= 0);
    ++files;
  }
  CHECK(files > 0);
}

TEST_CASE("safetensors: every fault has its label and names the tensor or key") {
  const std::string w = entry("w", "F32", "[2]", "[0,8]");
  struct Case {
    const char* label;
    std::string header;
    std::size_t data_bytes;
    const char* says;
  };
  const std::string long_name(5000, 'n');
  std::string deep_shape = "[1";
  for (int i = 0; i < 40; ++i) deep_shape += ",1";
  deep_shape += "]";
  const Case cases[] = {
      {"safetensors_header_start", "[1]", 0, "m.safetensors"},
      {"safetensors_header_start", " {}", 0, "m.safetensors"},
      {"safetensors_json", "{\"w\":", 0, "byte"},
      {"safetensors_json", "{} {}", 0, "byte"},
      {"safetensors_json", "{\"\xff\":{}}", 0, "UTF-8"},
      {"safetensors_json", "{\"w\":{\"dtype\":\"F32\",}}", 0, "byte"},
      {"safetensors_duplicate", "{" + w + "," + w + "}", 8, "'w'"},
      {"safetensors_duplicate", R"({"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8,
       "'dtype'"},
      {"safetensors_duplicate", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "'a'"},
      {"safetensors_duplicate", R"({"__metadata__":{},"__metadata__":{}})", 0, "'__metadata__'"},
      {"safetensors_field", R"({"w":{"dtype":"F32","shape":[2]}})", 8, "'data_offsets' is missing"},
      {"safetensors_field", R"({"w":{"shape":[2],"data_offsets":[0,8]}})", 8, "'dtype' is missing"},
      {"safetensors_field", R"({"w":{"dtype":"F32","data_offsets":[0,8]}})", 8, "'shape' is missing"},
      {"safetensors_field", R"({"w":{"colour":1}})", 8, "'colour'"},
      {"safetensors_field", R"({"w":3})", 8, "the number 3"},
      {"safetensors_field", R"({"w":{"dtype":null}})", 8, "null"},
      {"safetensors_field", R"({"w":{"shape":[[1]]}})", 8, "an array"},
      {"safetensors_field", R"({"w":{"shape":[{}]}})", 8, "an object"},
      {"safetensors_field", "{" + entry("w", "F32", "[-2]", "[0,8]") + "}", 8, "-2"},
      {"safetensors_field", "{" + entry("w", "F32", "[2.5]", "[0,8]") + "}", 8, "2.5"},
      {"safetensors_field", "{" + entry("w", "F32", "[2]", "[0]") + "}", 8, "1 numbers"},
      {"safetensors_field", "{" + entry("w", "F32", "[2]", "[0,8,9]") + "}", 8, "more than 2"},
      {"safetensors_field", R"({"__metadata__":{"a":1}})", 0, "__metadata__"},
      {"safetensors_dtype", "{" + entry("w", "F33", "[2]", "[0,8]") + "}", 8, "'F33'"},
      {"safetensors_limit", "{" + entry(long_name, "F32", "[2]", "[0,8]") + "}", 8, "5000"},
      {"safetensors_limit", "{" + entry("w", "F32", deep_shape, "[0,4]") + "}", 4, "32"},
      {"safetensors_offsets", "{" + entry("w", "F32", "[2]", "[8,0]") + "}", 8, "[8, 0]"},
      {"safetensors_offsets", "{" + w + "}", 7, "[0, 8]"},
      {"safetensors_overlap", "{" + w + "," + entry("v", "F32", "[2]", "[4,12]") + "}", 12, "'v'"},
      {"safetensors_overlap", "{" + w + "," + entry("v", "F32", "[2]", "[0,8]") + "}", 8, "overlaps"},
      {"safetensors_hole", "{" + w + "," + entry("v", "F32", "[2]", "[12,20]") + "}", 20, "[8, 12]"},
      {"safetensors_hole", "{" + entry("w", "F32", "[1]", "[4,8]") + "}", 8, "[0, 4]"},
      {"safetensors_hole", "{" + w + "}", 9, "[8, 9]"},
      {"safetensors_hole", "{}", 1, "[0, 1]"},
      {"safetensors_overflow", "{" + entry("w", "F32", "[4294967296,4294967296]", "[0,8]") + "}", 8, "'w'"},
      {"safetensors_overflow", "{" + entry("w", "F32", "[4294967296,4294967296,0]", "[0,8]") + "}", 8, "'w'"},
      {"safetensors_overflow", "{" + entry("w", "F32", "[18446744073709551615]", "[0,8]") + "}", 8,
       "1844674407370955161"},
      {"safetensors_field", "{" + entry("w", "F32", "[18446744073709551616]", "[0,8]") + "}", 8,
       "1844674407370955161"},
      {"safetensors_span", "{" + entry("w", "F32", "[3]", "[0,8]") + "}", 8, "12 bytes"},
      {"safetensors_span", "{" + entry("w", "F32", "[0]", "[0,8]") + "}", 8, "0 bytes"},
  };
  for (const Case& c : cases) {
    INFO(c.header);
    const Failure failure = open_failure(c.header, c.data_bytes);
    CHECK(failure.label == c.label);
    CHECK_THAT(failure.text, Contains(c.says) && Contains("m.safetensors"));
  }
}

TEST_CASE("safetensors: deep nesting is rejected without recursion") {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string header = "{\"w\":";
    for (int i = 0; i < 1'000'000; ++i) header += open;
    CHECK(open_failure(header, 0).label == "safetensors_field");
  }
}

TEST_CASE("safetensors: files that are not safetensors") {
  const ScratchFolder folder;
  const auto label = [&] { return failure_of([&] { SafetensorsFile::open(folder / "m"); }).label; };
  CHECK(label() == "file_open");
  spit(folder / "m", "");
  CHECK(label() == "safetensors_header_size");
  spit(folder / "m", "1234567");
  CHECK(label() == "safetensors_header_size");
  spit(folder / "m", std::string(8, '\0'));
  CHECK(label() == "safetensors_header_start");
  spit(folder / "m", std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10));  // 100,000,001
  CHECK(label() == "safetensors_header_size");
  spit(folder / "m", std::string(8, '\xff') + "{}");
  CHECK(label() == "safetensors_header_size");
  spit(folder / "m", std::string("\x03\0\0\0\0\0\0\0{}", 10));
  CHECK(label() == "safetensors_header_size");
  std::filesystem::remove(folder / "m");
  std::filesystem::create_directory(folder / "m");
  CHECK(label() == "file_open");
  std::filesystem::remove(folder / "m");
  REQUIRE(::mkfifo((folder / "m").c_str(), 0600) == 0);
  CHECK(label() == "file_open");
}

TEST_CASE("safetensors: unsupported dtypes affect only their own tensors") {
  const ScratchFolder folder;
  spit(folder / "m",
       encode("{" + entry("q", "F8_E4M3", "[4]", "[0,4]") + "," + entry("b", "BOOL", "[2]", "[4,6]") + "}",
              std::string("\0\1\2\3\1\2", 6)));
  const SafetensorsFile file = SafetensorsFile::open(folder / "m");
  const auto unsupported = failure_of([&] { (void)file.tensor("q"); });
  CHECK(unsupported.label == "safetensors_dtype");
  CHECK_THAT(unsupported.text, Contains("F8_E4M3") && Contains("'q'"));
  CHECK(failure_of([&] { (void)file.tensor("b"); }).label == "safetensors_bool");
}

TEST_CASE("safetensors: a file that shrinks while open gives an error") {
  const ScratchFolder folder;
  write_safetensors(folder / "m", {{"w", HostTensor(f32, {1000})}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "m");
  REQUIRE(::truncate((folder / "m").c_str(), 100) == 0);
  CHECK(failure_of([&] { (void)file.tensor("w"); }).label == "safetensors_read");
}

TEST_CASE("safetensors: invalid tensors are rejected and leave no file") {
  const ScratchFolder folder;
  const HostTensor t(f32, {1});
  const auto label = [&](const std::vector<TensorView>& tensors) {
    return failure_of([&] { write_safetensors(folder / "m", tensors); }).label;
  };
  CHECK(label({view_of("a", t), view_of("a", t)}) == "safetensors_duplicate");
  CHECK(label({view_of("__metadata__", t)}) == "safetensors_field");
  CHECK(label({view_of("\xff", t)}) == "safetensors_field");
  CHECK(label({view_of(std::string(5000, 'a'), t)}) == "safetensors_limit");
  CHECK(failure_of([&] { write_safetensors(folder / "no" / "m", {{"a", t}}); }).label == "file_write");
  std::filesystem::create_directory(folder / "m");
  CHECK(label({view_of("a", t)}) == "file_write");
  std::filesystem::remove(folder / "m");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("safetensors: thousands of mutated files are read or rejected, never more") {
  const ScratchFolder folder;
  write_safetensors(folder / "good", one_of_each_dtype(), {{"key", "value"}});
  const std::string good = slurp(folder / "good");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, good.data(), 8);
  const std::string header = good.substr(8, header_bytes), data = good.substr(8 + header_bytes);
  const std::string alphabet = "{}[]\",:0123456789-.eE \\nutFfI_\xff";
  std::mt19937_64 random(20240607);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int accepted = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = header;
    const std::size_t edits = 1 + below(4);
    for (std::size_t e = 0; e < edits; ++e) {
      if (text.empty()) text = header;
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0: text[at] = alphabet[below(alphabet.size())]; break;
        case 1: text.erase(at, 1 + below(8)); break;
        case 2: text.insert(at, 1, alphabet[below(alphabet.size())]); break;
        case 3: text.insert(at, text.substr(below(text.size()), below(40))); break;
        case 4: text.resize(at + 1); break;
      }
    }
    std::string bytes = data;
    if (below(8) == 0) bytes.resize(below(bytes.size() + 20));
    try {
      const auto parsed = parse_safetensors_header(text, bytes.size(), "m");
      std::uint64_t covered = 0;
      for (const auto& e : parsed.entries) {
        CHECK(e.begin == covered);
        covered = e.end;
      }
      CHECK(covered == bytes.size());
      ++accepted;
    } catch (const UserError& error) {
      CHECK_FALSE(error.label().empty());
      ++refused;
    }
  }
  CHECK(accepted + refused == 6000);
  CHECK(accepted > 0);
  CHECK(refused > 4000);
  // The same through the file, which also corrupts the length and the end.
  for (int round = 0; round < 400; ++round) {
    std::string bytes = good.substr(0, below(2) ? good.size() : below(good.size()));
    for (std::size_t e = 0; e < 1 + below(3) && !bytes.empty(); ++e)
      bytes[below(std::min<std::size_t>(bytes.size(), 64))] = static_cast<char>(random());
    spit(folder / "bad", bytes);
    try {
      const SafetensorsFile file = SafetensorsFile::open(folder / "bad");
      for (const std::string& name : file.names()) (void)file.tensor(name);
    } catch (const UserError& error) {
      CHECK_FALSE(error.label().empty());
    }
  }
}
