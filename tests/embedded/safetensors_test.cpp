#include <fmt/core.h>
#include <lathe/aot/lathe_call.hpp>

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "ir/support/error.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/tools/command.h"

/// The reader for C against files of Lathe's writer and reader, and against wrong files.
using namespace lathe;
using Catch::Contains;

namespace {

/// Returns a file of a header and data.
std::string file_of(std::string header, std::size_t data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i * 7 + 1);
  return file;
}

/// Opens a file. Returns the message of an error.
std::string fault(const std::string& file) {
  lathe_safetensors opened;
  return lathe_safetensors_open(&opened, file.data(), file.size()) == 0 ? "" : opened.message;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", dtype, shape, offsets);
}

Tensors sample() {
  Tensors tensors;
  for (const auto& [name, dtype] :
       {std::pair{"h.0.weight", f32}, {"bias", bf16}, {"steps", i64}, {"mask", boolean}}) {
    HostTensor value(dtype, {3, 2});
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i % 2));
    tensors.emplace(name, value);
  }
  tensors.emplace("scalar", HostTensor(f64, {}));
  tensors.emplace("empty", HostTensor(f32, {0, 5}));
  return tensors;
}

}  // namespace

TEST_CASE("safetensors in C: files of Lathe have the same tensors", "[embedded]") {
  const test::Scratch scratch;
  const Tensors tensors = sample();
  write_safetensors(scratch.path("a.safetensors"), tensors);
  aot::File file(scratch.path("a.safetensors"));
  CHECK(file.get()->count == std::ssize(tensors));
  for (const auto& [name, value] : tensors) {
    CAPTURE(name);
    lathe_tensor found;
    REQUIRE(lathe_safetensors_get(file.get(), name.c_str(), &found) == 1);
    CHECK(std::vector(found.shape, found.shape + found.rank) == value.shape());
    REQUIRE(found.bytes == value.bytes());
    CHECK((value.bytes() == 0 || std::memcmp(found.data, value.data(), value.bytes()) == 0));
  }
  CHECK(file.tensor<float>("h.0.weight", "F32", {3, 2})[1] == 1);
  CHECK_THROWS_WITH(file.tensor<float>("h.0.weight", "F32", {2, 3}),
                    "the tensor h.0.weight is F32 [3, 2], not F32 [2, 3]");
  CHECK_THROWS_WITH(file.tensor<float>("bias", "F32", {3, 2}), "the tensor bias is BF16 [3, 2], not F32 [3, 2]");
  CHECK_THROWS_WITH(file.tensor<double>("scalar", "F64", {1}), "the tensor scalar is F64 [], not F64 [1]");
  CHECK_THROWS_WITH(file.tensor<float>("typo", "F32", {}), "the file has no tensor: typo");
  CHECK_THROWS_WITH(file.tensor<std::uint16_t>("h.0.weight", "F32", {3, 2}),
                    "h.0.weight: the type is not one of F32");
  CHECK_THROWS_WITH(aot::File(scratch.path("none.safetensors")), Contains("No such file"));
  CHECK_THROWS_WITH(aot::File("/dev/null"), Contains("Invalid argument"));
}

TEST_CASE("safetensors in C: states are copied by name", "[embedded]") {
  const std::string header = R"({"__metadata__":{"format":"pt","a\"b":"}"},"a":)" + entry("F32", "2", "0,8") +
                             R"(,"b":)" + entry("I64", "1", "8,16") + "}";
  const std::string from = file_of(header, 16);
  const auto copy = [&](const std::string& states, std::vector<unsigned char>& block) {
    lathe_safetensors to, file;
    REQUIRE(lathe_safetensors_open(&file, from.data(), from.size()) == 0);
    const std::string layout = file_of(states, 0);
    REQUIRE(lathe_safetensors_layout(&to, layout.data(), layout.size(), block.data(), block.size()) == 0);
    const auto copies = lathe_safetensors_copy(&to, &file);
    return std::pair(copies, std::string(file.message));
  };
  std::vector<unsigned char> block(24, 0xff);
  const std::string b = R"({"b":)" + entry("I64", "1", "0,8"), c = R"(,"c":)" + entry("F32", "2", "8,16");
  CHECK(copy(b + R"(,"a":)" + entry("F32", "2", "8,16") + "}", block) == std::pair<std::int64_t, std::string>(2, ""));
  const std::string data = from.substr(from.size() - 16);
  CHECK(std::string(block.begin(), block.begin() + 16) == data.substr(8) + data.substr(0, 8));
  CHECK(block[16] == 0xff);
  CHECK(copy(b + c + "}", block) == std::pair<std::int64_t, std::string>(1, "the file has no tensor: c"));
  CHECK(copy(R"({"a":)" + entry("F32", "2,1", "0,8") + "}", block) ==
        std::pair<std::int64_t, std::string>(-1, "the tensor a is F32 [2], not F32 [2, 1]"));
}

TEST_CASE("safetensors in C: names with escapes and any order of keys", "[embedded]") {
  const std::string file = file_of(
      " {\n \"\\u00e9\\t\\ud83d\\ude00\\/\" : { \"data_offsets\" : [ 0 , 4 ] , \"dtype\" : \"F32\" , \"shape\" : [ ] "
      "} "
      "}",
      4);
  lathe_safetensors opened;
  REQUIRE(lathe_safetensors_open(&opened, file.data(), file.size()) == 0);
  CHECK(lathe_safetensors_find(&opened, "\xc3\xa9\t\xf0\x9f\x98\x80/", "F32", 0, nullptr) != nullptr);
  CHECK(fault(file_of("{}", 0)).empty());
  const std::string odd = file_of(R"({"a":)" + entry("F32", "1", "1,5") + "}", 5);
  REQUIRE(lathe_safetensors_open(&opened, odd.data(), odd.size()) == 0);
  const std::int64_t one = 1;
  CHECK(lathe_safetensors_find(&opened, "a", "F32", 1, &one) == nullptr);
  CHECK_THAT(opened.message, Contains("the data is not aligned to its elements: copy the tensor: a"));
}

TEST_CASE("safetensors in C: wrong files are rejected with the reason", "[embedded]") {
  const auto of = [](const std::string& value) { return file_of(R"({"a":)" + value + "}", 8); };
  const std::map<std::string, std::string> faults{
      {"1234567", "the file is shorter than 8 bytes"},
      {std::string(8, '\xff'), "the header is longer than the file"},
      {file_of("[]", 0), "the header is no JSON object"},
      {file_of("{} x", 0), "the header has text after its end"},
      {file_of("{\"a\"", 0), "the header is wrong after the tensor: a"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "the metadata of the header is wrong"},
      {of("1"), "the header is wrong at the tensor: a"},
      {of(R"({"x":1})"), "the header has an unknown key at the tensor: a"},
      {of(R"({"dtype":"F32","shape":[2]})"), "the header has no dtype, shape and data_offsets for the tensor: a"},
      {of(entry("F32", "-2", "0,8")), "the header has no dtype, shape and data_offsets for the tensor: a"},
      {of(entry("F32", "2", "0,16")), "the data of a tensor is outside of the file: a"},
      {of(entry("F32", "2", "8,0")), "the data of a tensor is outside of the file: a"},
      {of(entry("F32", "2", "0,4")), "the data of a tensor has not the size of its shape: a"},
      {of(entry("F32", "4294967296,4294967296", "0,8")), "the shape of a tensor is too large: a"},
      {of(entry("F32", "99999999999999999999", "0,8")),
       "the header has no dtype, shape and data_offsets for the tensor: a"},
      {file_of("{\"" + std::string(600, 'n') + "\":" + entry("F32", "2", "0,8") + "}", 8),
       "the header is wrong after the tensor"},
  };
  for (const auto& [file, message] : faults) {
    CAPTURE(file);
    CHECK_THAT(fault(file), Contains(message));
  }
}

TEST_CASE("safetensors in C: changed bytes never lead outside of the file", "[embedded]") {
  const test::Scratch scratch;
  write_safetensors(scratch.path("a.safetensors"), sample());
  const std::string good = scratch.read("a.safetensors");
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (std::uint64_t i = 0; i <= random() % 3; ++i)
      bytes[random() % bytes.size()] =
          static_cast<char>(random() % 4 == 0 ? random() : "{}[]\",:0179\\u"[random() % 13]);
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const std::vector<char> exact(bytes.begin(), bytes.end());  // so that a read behind the end is found
    lathe_safetensors file;
    if (lathe_safetensors_open(&file, exact.data(), exact.size()) != 0) {
      CHECK(file.message[0] != 0);
      continue;
    }
    ++accepted;
    lathe_tensor tensor;
    int left = static_cast<int>(file.count);
    while (lathe_safetensors_next(&file, &tensor) > 0) {
      --left;
      const auto at = reinterpret_cast<std::uintptr_t>(tensor.data),
                 first = reinterpret_cast<std::uintptr_t>(exact.data());
      CHECK((at >= first && at - first + tensor.bytes <= exact.size()));
    }
    CHECK(left == 0);
  }
  CHECK(accepted > 1000);
}

TEST_CASE("memory in C: large memory is zero and starts at a multiple of a huge page", "[embedded]") {
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5000}, (std::int64_t{1} << 21) - 1,
                                   std::int64_t{1} << 21, std::int64_t{5} << 20, (std::int64_t{3} << 21) + 1}) {
    CAPTURE(bytes);
    const aot::Memory<char> memory(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % (bytes >= 1 << 21 ? 1 << 21 : 4096) == 0);
    CHECK(std::ranges::all_of(memory, [](char c) { return c == 0; }));
    std::ranges::fill(memory, 'x');
  }
  CHECK_THROWS_AS(aot::Memory<double>(-1), std::bad_alloc);
  CHECK_THROWS_AS(aot::Memory<double>(PTRDIFF_MAX), std::bad_alloc);
  CHECK(lathe_memory_get(SIZE_MAX) == nullptr);
  CHECK_THROWS_WITH(aot::Pool(2000), Contains("cannot start 2000 threads: Invalid argument"));
  CHECK(aot::Pool(2).size() == 2);
}
