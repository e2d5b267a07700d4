#include "tests/text/template_reference.h"

#include <cstddef>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <sstream>

#include "models/text/template/values/text_forms.h"
#include "tests/support/texts/test_data.h"

namespace lathe::test {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

nlohmann::ordered_json read_chat_json(const std::string& path) {
  return nlohmann::ordered_json::parse(read_text(test_data("hf/chat/" + path)));
}

jinja::Value to_value(const nlohmann::ordered_json& json) { return jinja::parse_json(json.dump(), "test"); }

std::tm time_of(const std::string& text) {
  std::tm time{};
  std::istringstream(text) >> std::get_time(&time, "%Y-%m-%d %H:%M:%S");
  timegm(&time);  // computes the weekday and the day of the year
  return time;
}

std::size_t code_points_before(const std::string& text, std::size_t byte) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < byte; ++i) count += (static_cast<unsigned char>(text[i]) & 0xc0u) != 0x80u;
  return count;
}

}  // namespace lathe::test
