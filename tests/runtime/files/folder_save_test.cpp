#include "runtime/files/write/folder_save.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>

#include "tests/runtime/files/files_scratch.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// Number of renames until the process dies; negative: it does not die.
int renames_before_death = -1;
constexpr int dead = 42;

using Contents = std::map<std::string, std::string>;  // file contents by name

/// All files of a folder that are not hidden.
Contents contents_of(const fs::path& folder) {
  Contents found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with('.'))
      found[entry.path().lexically_relative(folder).string()] = slurp(entry.path());
  return found;
}

bool has_leftovers(const fs::path& folder) {
  return std::any_of(fs::directory_iterator(folder), {}, [](const auto& entry) {
    return AtomicFile::is_temporary_name(entry.path().filename().string());
  });
}

FolderSave::Names names_of(const Contents& contents) {
  FolderSave::Names names;
  for (const auto& [name, text] : contents) names.push_back(name);
  return names;
}

/// Reads all existing files, like a model loader.
void save(const fs::path& folder, const Contents& contents) {
  FolderSave made(folder);
  for (const auto& [name, text] : contents) made.write(name, text);
  made.commit(names_of(contents_of(folder)));
}

/// Runs a process that dies before one of its renames, as by SIGKILL: no destructor runs. Returns its exit status.
int save_and_die(const fs::path& folder, const Contents& contents, int renames) {
  const pid_t child = ::fork();
  if (child == 0) {
    renames_before_death = renames;
    try {
      save(folder, contents);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

bool is_complete(const fs::path& folder) {
  return failure_of([&] { FolderSave::require_complete(folder); }).label == "no error";
}

const Contents sharded{{"config.json", "old config"},
                       {"chat_template.jinja", "old template"},
                       {"model-00001-of-00002.safetensors", "old 1"},
                       {"model-00002-of-00002.safetensors", "old 2"},
                       {"model.safetensors.index.json", "old index"}};
const Contents resharded{{"config.json", "new config"},
                         {"model-00001-of-00002.safetensors", "new 1"},
                         {"model-00002-of-00002.safetensors", "new 2"},
                         {"model.safetensors.index.json", "new index"}};
const Contents single{
    {"config.json", "new config"}, {"model.safetensors", "new"}, {"1_Pooling/config.json", "new pooling"}};

}  // namespace

/// Replaces the C library's function in this program.
extern "C" int rename(const char* from, const char* to) noexcept {
  if (renames_before_death >= 0 && renames_before_death-- == 0) ::_exit(dead);
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

TEST_CASE("folder save: files of an earlier save that are not written again are removed") {
  const ScratchFolder folder;
  save(folder / "model", sharded);
  CHECK(contents_of(folder / "model") == sharded);
  spit(folder / "model" / "README.md", "mine");  // not read by any loader
  FolderSave made(folder / "model");
  for (const auto& [name, text] : single) made.write(name, text);
  CHECK(slurp(folder / "model" / "config.json") == "old config");
  made.commit(names_of(sharded));
  Contents expected = single;
  expected["README.md"] = "mine";
  CHECK(contents_of(folder / "model") == expected);
  CHECK(is_complete(folder / "model"));
}

TEST_CASE("folder save: an abandoned save leaves the folder unchanged") {
  const ScratchFolder folder;
  save(folder.path(), sharded);
  {
    FolderSave made(folder.path());
    for (const auto& [name, text] : resharded) made.write(name, text);
  }
  CHECK(contents_of(folder.path()) == sharded);
  CHECK(is_complete(folder.path()));
  CHECK_FALSE(has_leftovers(folder.path()));
}

TEST_CASE(
    "folder save: a process killed at any step leaves the old files, the new ones, or a folder that is rejected") {
  for (const Contents& next : {single, resharded}) {
    int refused = 0, status = dead;
    for (int renames = 0; status == dead; ++renames) {
      INFO("dies before rename " << renames);
      REQUIRE(renames < 20);
      const ScratchFolder folder;
      save(folder.path(), sharded);
      status = save_and_die(folder.path(), next, renames);
      REQUIRE((status == dead || status == 0));
      if (is_complete(folder.path())) {
        CHECK(contents_of(folder.path()) == (status == dead ? sharded : next));
      } else {
        ++refused;
        // No loader can find old weights with a new configuration, or the reverse.
        const Contents found = contents_of(folder.path());
        const auto is_old = [](const auto& file) { return file.second.starts_with("old"); };
        const bool is_mixed = std::any_of(found.begin(), found.end(), is_old) && found.contains("config.json");
        CHECK_FALSE((is_mixed && found.at("config.json").starts_with("new")));
      }
      save(folder.path(), next);
      CHECK(contents_of(folder.path()) == next);
      CHECK(is_complete(folder.path()));
      CHECK_FALSE(has_leftovers(folder.path()));
    }
    CHECK(refused >= 4);
  }
}

TEST_CASE("folder save: an interrupted save can be followed by a save of other files") {
  const ScratchFolder folder;
  save(folder.path(), sharded);
  REQUIRE(save_and_die(folder.path(), single, 2) == dead);
  CHECK(failure_of([&] { FolderSave::require_complete(folder.path()); }).label == "model_folder");
  save(folder.path(), resharded);
  CHECK(contents_of(folder.path()) == resharded);
}

TEST_CASE("folder save: a foreign file that a reader would load is an error before any change") {
  const ScratchFolder folder;
  spit(folder / "model.safetensors.index.json", "theirs");
  const Contents before = contents_of(folder.path());
  const auto refused = [&](const Contents& now) {
    CHECK(failure_of([&] { FolderSave::check(folder.path(), names_of(now), names_of(single)); }).label ==
          "output_folder");
    const Failure failure = failure_of([&] { save(folder.path(), single); });
    CHECK(failure.label == "output_folder");
    CHECK_THAT(failure.text, Contains("model.safetensors.index.json"));
    CHECK(contents_of(folder.path()) == now);
    CHECK(is_complete(folder.path()));
  };
  refused(before);
  SECTION("a file of an earlier save that was modified since") {
    save(folder.path(), sharded);
    spit(folder / "model.safetensors.index.json", "changed");
    refused(contents_of(folder.path()));
  }
}

TEST_CASE("folder save: overwriting a file in place marks the folder incomplete") {
  const ScratchFolder folder;
  save(folder.path(), sharded);
  fs::create_hard_link(folder / "config.json", folder / "another name");
  {
    FolderSave(folder.path()).write("config.json", "half");
  }
  CHECK_FALSE(is_complete(folder.path()));
  fs::remove(folder / "another name");
  save(folder.path(), resharded);
  CHECK(contents_of(folder.path()) == resharded);
  CHECK(is_complete(folder.path()));
}

TEST_CASE("folder save: links stay links") {
  const ScratchFolder folder;
  fs::create_directory(folder / "blobs");
  fs::create_directory(folder / "model");
  spit(folder / "blobs" / "1", "old");
  fs::create_symlink("../blobs/1", folder / "model" / "config.json");
  save(folder / "model", resharded);
  CHECK(fs::is_symlink(folder / "model" / "config.json"));
  CHECK(slurp(folder / "blobs" / "1") == "new config");
}

TEST_CASE("folder save: one process at a time") {
  const ScratchFolder folder;
  const FolderSave first(folder.path());
  CHECK(failure_of([&] { FolderSave second(folder.path()); }).label == "file_lock");
}

TEST_CASE("folder save: a list that Lathe did not write removes nothing") {
  const ScratchFolder folder;
  spit(folder / "victim", "kept");
  fs::create_directory(folder / "model");
  const fs::path record = folder / "model" / std::string(FolderSave::record_name);
  const std::string digest(64, '0');
  for (const std::string& list :
       {R"({"complete": true, "files": [{"name": "../victim", "bytes": 4, "sha256": ")" + digest + "\"}]}",
        std::string(R"({"complete": true, "files": [{"name": "/etc/passwd", "bytes": 4}]})"),
        std::string(R"({"complete": "yes", "files": []})"), std::string("[]")}) {
    spit(record, list);
    CHECK(failure_of([&] { save(folder / "model", single); }).label == "model_folder");
    CHECK(failure_of([&] { FolderSave::require_complete(folder / "model"); }).label == "model_folder");
    CHECK(slurp(folder / "victim") == "kept");
  }
}
