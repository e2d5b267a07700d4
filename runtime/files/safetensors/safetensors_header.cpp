#include "runtime/files/safetensors/safetensors_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/tensors/host_tensor.h"
#include "runtime/files/file_io.h"

namespace lathe {

namespace {

using nlohmann::json;

constexpr SafetensorsDType known_dtypes[] = {{"F64", 8, f64},
                                             {"F32", 4, f32},
                                             {"BF16", 2, bf16},
                                             {"F16", 2, f16},
                                             {"I64", 8, i64},
                                             {"I32", 4, i32},
                                             {"I8", 1, i8},
                                             {"U8", 1, u8},
                                             {"BOOL", 1, boolean},
                                             {"C64", 8, c64},
                                             {"C128", 16, c128},
                                             {"U64", 8, std::nullopt},
                                             {"U32", 4, std::nullopt},
                                             {"U16", 2, std::nullopt},
                                             {"I16", 2, std::nullopt},
                                             {"F8_E4M3", 1, std::nullopt},
                                             {"F8_E5M2", 1, std::nullopt},
                                             {"F8_E8M0", 1, std::nullopt}};

/// SAX parser of the header. It builds no values that the format does not have.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  HeaderReader(std::string_view file, SafetensorsHeader& header) : file_(file), header_(header) {}

  bool start_object(std::size_t) override {
    if (state_ == State::start) return go(State::top);
    if (state_ != State::tensor_or_metadata) unexpected("an object");
    if (in_metadata_) return go(State::metadata);
    fields_seen_ = 0;
    return go(State::tensor);
  }

  bool key(string_t& key) override {
    if (state_ == State::top) return start_entry(std::move(key));
    if (state_ == State::metadata) {
      metadata_name_ = std::move(key);
      if (header_.metadata.contains(metadata_name_)) duplicate(metadata_name_);
      return go(State::metadata_value);
    }
    if (key == "dtype") return start_field(1, key, State::dtype);
    if (key == "shape") return start_field(2, key, State::shape);
    if (key == "data_offsets") return start_field(4, key, State::offsets);
    fail("safetensors_field", fmt::format("unknown field {}", quote(key)));
  }

  bool end_object() override {
    if (state_ != State::tensor) return go(state_ == State::metadata ? State::top : State::done);
    if (fields_seen_ != 7)
      fail("safetensors_field", fmt::format("{} is missing", !(fields_seen_ & 1)   ? "'dtype'"
                                                             : !(fields_seen_ & 2) ? "'shape'"
                                                                                   : "'data_offsets'"));
    if (offsets_.size() != 2)
      fail("safetensors_field", fmt::format("'data_offsets' has {} numbers, not 2", offsets_.size()));
    SafetensorsEntry& entry = header_.entries.back();
    entry.begin = offsets_[0], entry.end = offsets_[1];
    return go(State::top);
  }

  bool start_array(std::size_t) override {
    if (state_ == State::shape) return go(State::dims);
    if (state_ != State::offsets) unexpected("an array");
    offsets_.clear();
    return go(State::offset);
  }
  bool end_array() override { return go(State::tensor); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::offset) {
      if (offsets_.size() == 2) fail("safetensors_field", "'data_offsets' has more than 2 numbers");
      offsets_.push_back(value);
      return true;
    }
    if (state_ != State::dims) unexpected(fmt::format("the number {}", value));
    std::vector<std::int64_t>& shape = header_.entries.back().shape;
    if (value > static_cast<std::uint64_t>(INT64_MAX))
      fail("safetensors_overflow", fmt::format("dimension {} of 'shape' is {}", shape.size(), value));
    if (shape.size() == max_safetensors_rank)
      fail("safetensors_limit", fmt::format("the rank is above {}", max_safetensors_rank));
    shape.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::metadata_value) {
      header_.metadata.emplace(std::move(metadata_name_), std::move(value));
      return go(State::metadata);
    }
    if (state_ != State::dtype) unexpected(fmt::format("the string {}", quote(value)));
    const SafetensorsDType* dtype = find_safetensors_dtype(value);
    if (!dtype) fail("safetensors_dtype", fmt::format("unknown dtype {}", quote(value)));
    header_.entries.back().dtype = dtype;
    return go(State::tensor);
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { unexpected(fmt::format("the number {}", value)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected("the number " + quote(text)); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while ..."
    std::string message = error.what();
    if (const auto at = message.find(": "); at != std::string::npos) message.erase(0, at + 2);
    throw UserError(fmt::format("{}: the header is not JSON at byte {}: {}", file_, position, cut(message)),
                    "safetensors_json");
  }

 private:
  enum class State {
    start,
    top,
    tensor_or_metadata,
    metadata,
    metadata_value,
    tensor,
    dtype,
    shape,
    dims,
    offsets,
    offset,
    done
  };

  bool go(State state) {
    state_ = state;
    return true;
  }

  bool start_entry(std::string name) {
    if (name.size() > max_safetensors_name_bytes)
      fail("safetensors_limit", fmt::format("the name {} has {} bytes, more than {}", quote(name), name.size(),
                                            max_safetensors_name_bytes));
    if (!names_.insert(name).second) duplicate(name);
    in_metadata_ = name == safetensors_metadata_key;
    if (!in_metadata_) {
      if (header_.entries.size() == max_safetensors_tensors)
        fail("safetensors_limit", fmt::format("there are more than {} tensors", max_safetensors_tensors));
      header_.entries.emplace_back().name = std::move(name);
    }
    return go(State::tensor_or_metadata);
  }

  bool start_field(int bit, const std::string& name, State state) {
    if (fields_seen_ & bit) duplicate(name);
    fields_seen_ |= bit;
    return go(state);
  }

  static std::string cut(const std::string& text) { return text.size() > 200 ? text.substr(0, 200) + "..." : text; }

  [[noreturn]] void duplicate(const std::string& key) const {
    fail("safetensors_duplicate", fmt::format("the key {} occurs twice", quote(key)));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    const char* wanted = state_ == State::start                ? "an object of tensors"
                         : state_ == State::tensor_or_metadata ? "an object"
                         : state_ == State::metadata_value     ? "a string"
                         : state_ == State::dtype              ? "a string for 'dtype'"
                         : state_ == State::shape              ? "an array for 'shape'"
                         : state_ == State::dims               ? "integers >= 0 in 'shape'"
                         : state_ == State::offsets            ? "an array for 'data_offsets'"
                                                               : "integers >= 0 in 'data_offsets'";
    fail("safetensors_field", fmt::format("expected {}, found {}", wanted, what));
  }

  [[noreturn]] void fail(std::string_view label, std::string_view message) const {
    std::string where(file_);
    if (state_ != State::start && state_ != State::top)
      where += in_metadata_ ? ": __metadata__" : ": tensor " + quote(header_.entries.back().name);
    throw UserError(fmt::format("{}: {}", where, message), label);
  }

  std::string_view file_;
  SafetensorsHeader& header_;
  State state_ = State::start;
  bool in_metadata_ = false;
  int fields_seen_ = 0;
  std::unordered_set<std::string> names_;
  std::string metadata_name_;
  std::vector<std::uint64_t> offsets_;
};

std::string describe(const SafetensorsEntry& entry) {
  return fmt::format("tensor {} ({}{})", quote(entry.name), entry.dtype->name, shape_to_string(entry.shape));
}

void check_span(const SafetensorsEntry& entry, std::uint64_t data_bytes, std::string_view file) {
  if (entry.begin > entry.end || entry.end > data_bytes)
    throw UserError(fmt::format("{}: {}: data_offsets [{}, {}] do not lie within the {} bytes of data", file,
                                describe(entry), entry.begin, entry.end, data_bytes),
                    "safetensors_offsets", entry.end > data_bytes ? "the file may be truncated" : "");
  auto bytes = static_cast<std::int64_t>(entry.dtype->bytes);
  bool overflow = false, empty = false;
  for (const std::int64_t dim : entry.shape) {
    if (dim == 0)
      empty = true;
    else
      overflow = __builtin_mul_overflow(bytes, dim, &bytes) || overflow;
  }
  if (overflow)
    throw UserError(fmt::format("{}: {}: the size overflows 63 bits", file, describe(entry)), "safetensors_overflow");
  const std::uint64_t expected = empty ? 0 : static_cast<std::uint64_t>(bytes);
  if (entry.end - entry.begin != expected)
    throw UserError(fmt::format("{}: {}: needs {} bytes, but data_offsets [{}, {}] span {}", file, describe(entry),
                                expected, entry.begin, entry.end, entry.end - entry.begin),
                    "safetensors_span");
}

/// Checks that the entries, sorted by offset, cover [0, data_bytes) exactly once.
void check_cover(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes, std::string_view file) {
  std::uint64_t covered = 0;
  const SafetensorsEntry* previous = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin < covered)
      throw UserError(fmt::format("{}: {} at [{}, {}] overlaps {} at [{}, {}]", file, describe(entry), entry.begin,
                                  entry.end, describe(*previous), previous->begin, previous->end),
                      "safetensors_overlap");
    if (entry.begin > covered)
      throw UserError(fmt::format("{}: bytes [{}, {}] of the data before {} belong to no tensor", file, covered,
                                  entry.begin, describe(entry)),
                      "safetensors_hole");
    covered = entry.end;
    previous = &entry;
  }
  if (covered != data_bytes)
    throw UserError(
        fmt::format("{}: bytes [{}, {}] at the end of the data belong to no tensor", file, covered, data_bytes),
        "safetensors_hole");
}

}  // namespace

const SafetensorsDType* find_safetensors_dtype(std::string_view name) {
  const auto* found = std::ranges::find(known_dtypes, name, &SafetensorsDType::name);
  return found == std::end(known_dtypes) ? nullptr : found;
}

const SafetensorsDType& safetensors_dtype(DType dtype) {
  const auto* found = std::ranges::find(known_dtypes, std::optional(dtype), &SafetensorsDType::dtype);
  LATHE_ASSERT(found != std::end(known_dtypes));
  return *found;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, std::string_view file) {
  if (text.empty() || text.front() != '{')
    throw UserError(fmt::format("{}: the header does not start with '{{'", file), "safetensors_header_start",
                    "is this a .safetensors file?");
  SafetensorsHeader header;
  HeaderReader reader(file, header);
  json::sax_parse(text.begin(), text.end(), &reader);
  for (const SafetensorsEntry& entry : header.entries) check_span(entry, data_bytes, file);
  // Empty tensors may have equal offsets, so the name is the tie-breaker.
  std::ranges::sort(header.entries, {},
                    [](const SafetensorsEntry& e) { return std::tuple(e.begin, e.end, std::string_view(e.name)); });
  check_cover(header.entries, data_bytes, file);
  return header;
}

}  // namespace lathe
