#include "runtime/files/paths.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/files/other_format.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/files/safetensors/tensor_folder.h"
#include "runtime/files/strict_json.h"
#include "tests/runtime/files/files_scratch.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;
namespace fs = std::filesystem;

TEST_CASE("paths: one that cannot be accessed is a UserError") {
  const ScratchFolder folder;
  fs::create_symlink("loop", folder / "loop");
  const std::string name(300, 'a');
  for (const fs::path& path : {folder / "loop", folder / name, fs::path(name), folder / "loop" / "config.json"}) {
    CHECK(failure_of([&] { (void)path_exists(path); }).label == "file_open");
    CHECK(failure_of([&] { (void)is_folder(path); }).label == "file_open");
    CHECK(failure_of([&] { (void)is_plain_file(path); }).label == "file_open");
    CHECK(failure_of([&] { (void)list_folder(path); }).label == "file_open");
    CHECK(failure_of([&] { make_folders(path / "below"); }).label == "file_write");
    CHECK(failure_of([&] { (void)TensorFolder::open(path); }).label == "file_open");
  }
}

TEST_CASE("paths: a missing path is not an error, also below a file") {
  const ScratchFolder folder;
  spit(folder / "file", "text");
  CHECK(path_exists(folder / "file"));
  CHECK(is_plain_file(folder / "file"));
  CHECK_FALSE(is_folder(folder / "file"));
  CHECK_FALSE(path_exists(folder / "none"));
  CHECK_FALSE(path_exists(folder / "file" / "below"));
  CHECK_FALSE(path_exists(""));
  make_folders(folder / "a" / "b");
  CHECK(is_folder(folder / "a" / "b"));
  CHECK(list_folder(folder.path()) == std::vector<fs::path>{folder / "a", folder / "file"});
}

TEST_CASE("files of other formats are named in errors about .safetensors and JSON") {
  const ScratchFolder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 988097824\n";
  for (const auto& [bytes, name] : {std::pair{pointer, "Git LFS pointer"},
                                    {"GGUF\x03" + std::string(100, '\0'), "GGUF"},
                                    {"PK\x03\x04" + std::string(100, '\7'), "PyTorch"},
                                    {std::string("<!DOCTYPE html>\n<html lang=\"en\"></html>"), "HTML"}}) {
    INFO(name);
    spit(folder / "model.safetensors", bytes);
    const Failure of_tensors = failure_of([&] { (void)SafetensorsFile::open(folder / "model.safetensors"); });
    CHECK(of_tensors.label == "file_format");
    CHECK_THAT(of_tensors.text, Contains(name) && Contains("model.safetensors"));
    const Failure of_json = failure_of([&] { (void)parse_strict_json(bytes, "tokenizer.json"); });
    CHECK(of_json.label == "file_format");
    CHECK_THAT(of_json.text, Contains(name) && Contains("tokenizer.json"));
  }
  CHECK_FALSE(other_format("{\"a\": 1}"));
  CHECK_FALSE(other_format(""));
}
