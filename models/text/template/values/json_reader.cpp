#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "models/text/template/values/json.h"
#include "runtime/files/file_io.h"
#include "runtime/files/strict_json.h"

namespace lathe::jinja {

namespace {

/// Builds values from the parser's events, because the parser's own objects sort their keys.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    // The parser also calls this for i64 values that are not negative.
    return value <= INT64_MAX ? add(value) : add(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(Value(std::move(value))); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(); }
  bool key(string_t& value) override {
    Level& level = levels_.back();
    if (level.dict.find(value)) fail(fmt::format("the key {} occurs twice", quote(value)));
    level.key = std::move(value);
    return true;
  }
  bool end_object() override { return add(std::move(close().dict).finish()); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return add(Value::list(std::move(close().items))); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    fail(json_fault(text_, position, error.what()));
  }

  Value take() { return std::move(levels_.front().items.front()); }

 private:
  static constexpr std::size_t max_levels = 64;
  struct Level {
    std::vector<Value> items;
    DictBuilder dict;
    std::optional<std::string> key;  ///< key of the next value
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(fmt::format("{}: {}", file_, message), "json");
  }

  bool open() {
    if (levels_.size() > max_levels) fail(fmt::format("the JSON nests more than {} deep", max_levels));
    levels_.emplace_back();
    return true;
  }
  Level close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    return level;
  }
  bool add(Value value) {
    Level& level = levels_.back();
    if (level.key) {
      level.dict.set(*level.key, std::move(value));
      level.key.reset();
    } else {
      level.items.push_back(std::move(value));
    }
    return true;
  }

  std::string_view text_, file_;
  std::vector<Level> levels_ = std::vector<Level>(1);
};

}  // namespace

Value parse_json(std::string_view text, std::string_view file) {
  Builder builder(text, file);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace lathe::jinja
