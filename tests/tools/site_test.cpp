#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// The website built by docs/site/build.sh.
namespace {

namespace fs = std::filesystem;

bool is_installed(const std::string& package) {
  const std::string command =
      "dpkg-query -W -f='${Status}' " + package + " 2>/dev/null | grep -q 'install ok installed'";
  return std::system(command.c_str()) == 0;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns the files that the navigation names: "docs/ir.md" becomes docs/ir/index.html, and a README or index
/// becomes the index of its folder.
std::vector<fs::path> pages_of_navigation() {
  std::vector<fs::path> pages;
  std::istringstream config(text_of(lathe::test::source_path("docs/site/mkdocs.yml")));
  bool in_navigation = false;
  for (std::string line; std::getline(config, line);) {
    in_navigation = in_navigation || line == "nav:";
    static const std::regex page(R"(([\w/.-]+)\.(md|html)$)");
    std::smatch found;
    if (!in_navigation || !std::regex_search(line, found, page)) continue;
    fs::path path = found[1].str();
    if (found[2] == "html") {
      pages.push_back(path += ".html");
    } else if (path.filename() == "README" || path.filename() == "index") {
      pages.push_back(path.parent_path() / "index.html");
    } else {
      pages.push_back(path / "index.html");
    }
  }
  return pages;
}

std::string decoded(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else if (text.compare(i, 5, "&amp;") == 0) {
      result += '&';
      i += 4;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// Returns the values of an attribute in a page: href="..".
std::vector<std::string> values_of(const std::string& page, const std::string& attribute) {
  std::vector<std::string> values;
  const std::string start = " " + attribute + "=\"";
  for (std::size_t at = page.find(start); at != std::string::npos; at = page.find(start, at)) {
    at += start.size();
    values.push_back(decoded(page.substr(at, page.find('"', at) - at)));
  }
  return values;
}

class Site {
 public:
  explicit Site(fs::path folder) : folder_(std::move(folder)) {
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.path().extension() == ".html" && entry.path().filename() != "404.html")
        pages_[entry.path()] = text_of(entry.path());
  }

  std::size_t pages() const { return pages_.size(); }
  int links() const { return links_; }

  /// Returns broken links to pages and files of the site, such as "docs/ir/index.html: ../opps/".
  std::vector<std::string> broken_links() {
    static const std::regex elsewhere("^([a-z]+:|//)");
    std::vector<std::string> broken;
    for (const auto& [page, text] : pages_) {
      std::set<std::string> targets;
      for (const char* attribute : {"href", "src"})
        for (std::string& target : values_of(text, attribute)) targets.insert(std::move(target));
      for (const std::string& target : targets) {
        if (std::regex_search(target, elsewhere)) continue;
        ++links_;
        if (!leads_somewhere(page, target)) broken.push_back(fs::relative(page, folder_).string() + ": " + target);
      }
    }
    return broken;
  }

 private:
  bool leads_somewhere(const fs::path& page, const std::string& target) {
    const std::size_t hash = target.find('#');
    const std::string path = target.substr(0, std::min(hash, target.find('?')));
    fs::path file = path.empty() ? page : (page.parent_path() / path).lexically_normal();
    if (fs::is_directory(file)) file = (file / "index.html").lexically_normal();
    if (!fs::is_regular_file(file)) return false;
    // Doxygen links to nested classes even if all of them are private.
    const std::string part = hash == std::string::npos ? "" : target.substr(hash + 1);
    if (part.empty() || part == "nested-classes" || !pages_.contains(file)) return true;
    return parts_of(file).contains(part);
  }

  const std::set<std::string>& parts_of(const fs::path& page) {
    const auto [at, is_new] = parts_.try_emplace(page);
    for (const char* attribute : {"id", "name"})
      if (is_new)
        for (std::string& part : values_of(pages_.at(page), attribute)) at->second.insert(std::move(part));
    return at->second;
  }

  fs::path folder_;
  std::map<fs::path, std::string> pages_;
  std::map<fs::path, std::set<std::string>> parts_;  ///< anchors for links with #
  int links_ = 0;
};

}  // namespace

TEST_CASE("the site builds without warnings, and its links resolve", "[tools][docs]") {
  for (const char* package : {"mkdocs", "mkdocs-material", "doxygen", "cmake"})
    if (!is_installed(package)) {
      std::printf("SKIP: the site of the docs is built with %s, which is not installed\n", package);
      return;
    }
  const lathe::test::Scratch scratch;
  const std::string command = "bash '" + lathe::test::source_path("docs/site/build.sh").string() + "' '" +
                              scratch.path("site") + "' > '" + scratch.path("stdout") + "' 2> '" +
                              scratch.path("stderr") + "'";
  const int status = std::system(command.c_str());
  INFO(scratch.read("stderr"));
  REQUIRE(status == 0);
  CHECK(scratch.read("stderr").empty());
  CHECK(scratch.read("stdout") == fs::canonical(scratch.path("site")).string() + "/index.html\n");

  const std::vector<fs::path> pages = pages_of_navigation();
  CHECK(pages.size() > 30);
  for (const fs::path& page : pages) {
    INFO(page);
    CHECK(fs::file_size(scratch.path("site") / page) > 1000);
  }
  Site site(fs::canonical(scratch.path("site")));
  CHECK(site.broken_links() == std::vector<std::string>{});
  CHECK(site.pages() > pages.size());
  CHECK(site.links() > 1000);

  // The search index leads from a public name to the section of its header.
  const auto index = nlohmann::json::parse(text_of(scratch.path("site/search/search_index.json"))).at("docs");
  for (const char* name : {"from_dlpack", "OutputRefs", "warmup_cosine", "CompileOptions::reserve", "Mode"}) {
    INFO(name);
    CHECK(std::any_of(index.begin(), index.end(), [&](const nlohmann::json& part) {
      return part.at("location").get<std::string>().starts_with("names/#") &&
             part.at("text").get<std::string>().find(name) != std::string::npos;
    }));
  }
}
