#include "runtime/files/npz/npz.h"

#include <catch2/catch.hpp>
#include <random>

#include "runtime/files/npz/npy_header.h"
#include "runtime/files/zip/crc32.h"
#include "runtime/files/zip/inflate.h"
#include "runtime/files/zip/zip_archive.h"
#include "runtime/files/zip/zip_writer.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;

namespace {

constexpr ZipErrors zip_errors{.damaged = "zip_damaged", .unsupported = "zip_form", .origin = "", .form = ""};

std::filesystem::path data_file(const std::string& name) { return test_data("runtime/files/data/" + name); }

void check_arrays(const NpzFile& file) {
  const HostTensor steps = file.tensor("steps"), noise = file.tensor("noise"), columns = file.tensor("columns");
  CHECK(steps.dtype() == i64);
  CHECK(steps.shape() == std::vector<std::int64_t>{1000});
  for (std::int64_t i = 0; i < steps.numel(); ++i) CHECK(steps.get_int(i) == i % 97);
  CHECK(noise.dtype() == u8);
  CHECK(noise.numel() == 700);
  CHECK(columns.shape() == std::vector<std::int64_t>{2, 3, 4});
  for (std::int64_t i = 0; i < columns.numel(); ++i) CHECK(columns.get(i) == static_cast<double>(i));
  CHECK(file.tensor("row").get(1) == -2);
  CHECK(file.tensor("flags").dtype() == boolean);
  CHECK(file.tensor("flags").get_int(3) == 1);
  CHECK(file.tensor("number").shape().empty());
  CHECK(file.tensor("number").get_int(0) == 7);
  CHECK(file.tensor("none").shape() == std::vector<std::int64_t>{0, 3});
  CHECK(file.tensor("pairs").dtype() == c64);
  CHECK(file.tensor("layers/0.weight").get_int(0) == -1);
  CHECK(file.contains("row"));
  CHECK(!file.contains("row.npy"));
  CHECK(file.names().size() == 9);
}

/// Reads all arrays of a file with these bytes. Any exception but a UserError ends the test.
bool reads(const std::filesystem::path& path, const std::string& bytes) {
  spit(path, bytes);
  return failure_of([&] {
           const NpzFile file = NpzFile::open(path);
           for (const std::string& name : file.names()) file.tensor(name);
         }).label == "no error";
}

Failure header_failure(const std::string& text, char version = 1) {
  std::string file = std::string("\x93NUMPY", 6) + version + std::string(1, '\0');
  file += static_cast<char>(text.size());
  file += std::string(version == 1 ? 1 : 3, '\0') + text;
  return failure_of([&] { read_npy_header(std::as_bytes(std::span(file)), "a.npz: the array 'x'"); });
}

std::string inflated(const std::string& bytes, std::size_t size) {
  std::string to(size, '\0');
  const auto fault = inflate(std::as_bytes(std::span(bytes)), std::as_writable_bytes(std::span(to)));
  return fault ? std::string(*fault) : to;
}

}  // namespace

TEST_CASE("npz: files of NumPy, plain and compressed", "[files]") {
  check_arrays(NpzFile::open(data_file("arrays.npz")));
  check_arrays(NpzFile::open(data_file("compressed.npz")));
}

TEST_CASE("npz: a written file has the tensors, and equal tensors give equal bytes", "[files]") {
  const ScratchFolder folder;
  Tensors tensors;
  for (const DType dtype : {f32, f64, f16, i32, i64, i8, u8, boolean, c64, c128})
    tensors.set(std::string(name(dtype)) + ".weight", HostTensor::from({2, 1}, {0, 1}, dtype));
  tensors.set("number", HostTensor::scalar(2.5));
  tensors.set("größe", HostTensor(f32, {3, 0}));
  write_npz(folder / "a.npz", tensors);
  write_npz(folder / "b.npz", tensors);
  CHECK(slurp(folder / "a.npz") == slurp(folder / "b.npz"));
  const NpzFile file = NpzFile::open(folder / "a.npz");
  CHECK(file.names().size() == 12);
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    const HostTensor read = file.tensor(name);
    CHECK(read.dtype() == tensor.dtype());
    CHECK(read.shape() == tensor.shape());
    CHECK(read.to_string() == tensor.to_string());
  }
}

TEST_CASE("npz: the header of an array is that of NumPy", "[files]") {
  const std::string header = npy_header(f32, {3}, "a");
  CHECK(header.size() % 64 == 0);
  CHECK_THAT(header, Contains("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  CHECK_THAT(npy_header(boolean, {}, "a"), Contains("'descr': '|b1'") && Contains("'shape': (), "));
  CHECK_THAT(npy_header(c128, {2, 3}, "a"), Contains("'shape': (2, 3), "));
  CHECK(failure_of([] { npy_header(bf16, {1}, "a"); }).label == "npz_dtype");
}

TEST_CASE("npz: headers with other keys, dtypes and orders", "[files]") {
  CHECK(header_failure("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}").label == "no error");
  CHECK(header_failure("{\"shape\":(),\"fortran_order\":False,\"descr\":\"|i1\"}", 2).label == "no error");
  for (const char* dtype : {"'>f4'", "'|O'", "'<U5'", "'|V2'", "[('a', '<f4')]"}) {
    const Failure failure =
        header_failure(std::string("{'descr': ") + dtype + ", 'fortran_order': False, 'shape': ()}");
    CHECK(failure.label == "npz_dtype");
    CHECK_THAT(failure.text, Contains("a.npz: the array 'x' has elements of the dtype"));
  }
  for (const char* text : {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 1, 'shape': ()}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': ''}",
                           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}"})
    CHECK(header_failure(text).label == "npz_header");
  CHECK(header_failure("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 9).label == "npz_header");
}

TEST_CASE("npz: files that are damaged or no arrays are errors", "[files]") {
  const ScratchFolder folder;
  spit(folder / "text.npz", "no archive");
  CHECK(failure_of([&] { NpzFile::open(folder / "text.npz"); }).label == "npz_archive");
  CHECK(failure_of([&] { NpzFile::open(folder / "none.npz"); }).label == "file_open");
  CHECK(failure_of([&] { NpzFile::open(data_file("arrays.npz")).tensor("missing"); }).label == "npz_archive");
  {
    AtomicFile file(folder / "other.npz");
    ZipWriter zip(file);
    zip.add("readme.txt", {});
    zip.finish();
    file.commit();
  }
  CHECK_THAT(failure_of([&] { NpzFile::open(folder / "other.npz"); }).text, Contains("'readme.txt' in the archive"));
  const auto write_array = [&](const std::string& header, const std::string& elements) {
    AtomicFile file(folder / "array.npz");
    ZipWriter zip(file);
    zip.add("x.npy", {std::as_bytes(std::span(header)), std::as_bytes(std::span(elements))});
    zip.finish();
    file.commit();
    return failure_of([&] { NpzFile::open(folder / "array.npz").tensor("x"); }).label;
  };
  CHECK(write_array(npy_header(i8, {3}, ""), "abc") == "no error");
  CHECK(write_array(npy_header(i8, {3}, ""), "ab") == "npz_size");
  CHECK(write_array(npy_header(i8, {3}, ""), "abcd") == "npz_size");
  CHECK(write_array(npy_header(f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}, ""), "") == "npz_size");
  CHECK(write_array(npy_header(boolean, {1}, ""), "\x02") == "npz_bool");
}

TEST_CASE("npz: damaged archives end in errors", "[files]") {
  const ScratchFolder folder;
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::size_t refused = 0;
  for (const char* name : {"arrays.npz", "compressed.npz"}) {
    const std::string whole = slurp(data_file(name));
    CHECK(reads(folder / "a.npz", whole));
    for (std::size_t size = 0; size < whole.size(); size += 97)
      CHECK(!reads(folder / "a.npz", whole.substr(0, size)));
    for (int i = 0; i < 400; ++i) {
      std::string bytes = whole;
      for (std::size_t changes = 1 + below(3); changes > 0; --changes)
        bytes[below(bytes.size())] = static_cast<char>(below(256));
      refused += reads(folder / "a.npz", bytes) ? 0 : 1;
    }
  }
  CHECK(refused > 600);  // a checksum covers all elements; some fields have no effect, such as dates
}

TEST_CASE("npz: the ZIP64 form has the same files", "[files]") {
  const ScratchFolder folder;
  const std::string a = "first", b = "second";
  {
    AtomicFile file(folder / "a.zip");
    ZipWriter zip(file, 0);
    zip.add("a", {std::as_bytes(std::span(a))});
    zip.add("b", {std::as_bytes(std::span(a)), std::as_bytes(std::span(b))});
    zip.finish();
    file.commit();
  }
  const ZipArchive archive(folder / "a.zip", zip_errors);
  CHECK(archive.names() == std::vector<std::string>{"a", "b"});
  CHECK(archive.text("a") == "first");
  CHECK(archive.text("b") == "firstsecond");
  CHECK(archive.extract("b").size() == 11);
}

TEST_CASE("npz: the checksum and deflate of the formats", "[files]") {
  const std::string digits = "123456789";
  CHECK(crc32(std::as_bytes(std::span(digits))) == 0xcbf43926);
  CHECK(crc32({}, 0xcbf43926) == 0xcbf43926);
  // zlib's bytes of "abcabcabcabc" with the fixed codes, and of "stored" as it is.
  CHECK(inflated(std::string("\x4b\x4c\x4a\x4e\x84\x21\x00", 7), 12) == "abcabcabcabc");
  CHECK(inflated(std::string("\x01\x06\x00\xf9\xffstored", 11), 6) == "stored");
  CHECK(inflated(std::string("\x01\x06\x00\xf9\xffstored", 11), 5) == "it has more bytes than its header says");
  CHECK(inflated(std::string("\x01\x06\x00\xf9\xffstored", 11), 7) == "it has fewer bytes than its header says");
  CHECK(inflated(std::string("\x01\x06\x00\xf9\xffstor", 9), 6) == "it ends within a block");
  CHECK(inflated(std::string("\x01\x06\x00\xf8\xffstored", 11), 6) == "invalid stored block lengths");
  CHECK(inflated("\x07", 1) == "invalid block type");
  CHECK(inflated("", 1) == "it ends within a block");
  CHECK(inflated(std::string("\x03\x00more", 6), 0) == "bytes follow its last block");
}
