#pragma once

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "models/text/template/values/value.h"

namespace lathe::test {

std::string read_text(const std::filesystem::path& path);
/// Reads a JSON file under tests/hf/chat; keys keep their order.
nlohmann::ordered_json read_chat_json(const std::string& path);
jinja::Value to_value(const nlohmann::ordered_json& json);
/// Parses "2025-01-31 09:05:07".
std::tm time_of(const std::string& text);
/// Returns Python's index of a byte: the number of code points before it.
std::size_t code_points_before(const std::string& text, std::size_t byte);

}  // namespace lathe::test
