#include "runtime/files/npz/npy_header.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "ir/support/error.h"

namespace lathe {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

/// NumPy's names of dtypes, for little-endian elements.
struct NpyDtype {
  std::string_view name;
  DType dtype;
};
constexpr NpyDtype npy_dtypes[] = {{"<f4", f32}, {"<f8", f64}, {"<f2", f16},     {"<i4", i32}, {"<i8", i64},
                                   {"|i1", i8},  {"|u1", u8},  {"|b1", boolean}, {"<c8", c64}, {"<c16", c128}};

[[noreturn]] void fail(const std::string& owner, std::string_view text) {
  throw UserError(fmt::format("{}: {}", owner, text), "npz_header",
                  "the file is damaged, or NumPy has not written it");
}

/// Parses the text of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& owner) : rest_(text), owner_(owner) {}

  void parse(NpyHeader& header) {
    std::optional<std::string> dtype;
    std::optional<bool> order;
    bool has_shape = false;
    expect('{');
    while (!takes('}')) {
      const std::string key = text();
      expect(':');
      if (key == "descr" && !dtype)
        dtype = dtype_name();
      else if (key == "fortran_order" && !order)
        order = flag();
      else if (key == "shape" && !has_shape)
        has_shape = true, header.shape = shape();
      else
        fail(owner_, fmt::format("the header has the key '{}' that is unknown or repeated", key));
      if (!takes(',') && peek() != '}') fail(owner_, "the header has no comma between two keys");
    }
    if (!dtype || !order || !has_shape) fail(owner_, "the header has no dtype, no shape or no order of the elements");
    header.dtype = dtype_of(*dtype);
    header.is_column_major = *order;
  }

 private:
  [[noreturn]] void fail_dtype(std::string_view name) const {
    throw UserError(
        fmt::format("{} has elements of the dtype {}", owner_, name), "npz_dtype",
        "Lathe reads f4, f8, f2, i4, i8, i1, u1, b1, c8 and c16 in little-endian order: convert the array");
  }
  DType dtype_of(const std::string& name) const {
    for (const NpyDtype& known : npy_dtypes)
      if (known.name == name) return known.dtype;
    fail_dtype(name);
  }
  /// A record has a list of names and dtypes.
  std::string dtype_name() {
    if (peek() == '[') fail_dtype("of a record");
    return text();
  }

  char peek() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool takes(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!takes(c)) fail(owner_, fmt::format("the header has no '{}' where it is expected", c));
  }
  std::string text() {
    const char mark = peek();
    if (mark != '\'' && mark != '"') fail(owner_, "the header has no text where it is expected");
    const std::size_t end = rest_.find(mark, 1);
    if (end == std::string_view::npos) fail(owner_, "a text of the header has no end");
    const std::string found(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return found;
  }
  bool flag() {
    (void)peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail(owner_, "fortran_order is neither True nor False");
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!takes(')')) {
      (void)peek();
      std::int64_t size = -1;
      const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (read.ec != std::errc() || size < 0) fail(owner_, "a size of the shape is no number");
      rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()));
      sizes.push_back(size);
      if (!takes(',') && peek() != ')') fail(owner_, "the shape has no comma between two sizes");
    }
    return sizes;
  }

  std::string_view rest_;
  const std::string& owner_;
};

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& owner) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const auto number = [&](std::size_t at) { return std::size_t{static_cast<unsigned char>(bytes[at])}; };
  if (!bytes.starts_with(magic) || bytes.size() < 10) fail(owner, "the array does not start with the mark of NumPy");
  const std::size_t version = number(6);
  if (version < 1 || version > 3) fail(owner, fmt::format("the array has version {} of the format", version));
  const std::size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) fail(owner, "the array ends within its header");
  std::size_t size = number(8) + (number(9) << 8);
  if (version > 1) size += (number(10) << 16) + (number(11) << 24);
  if (size > bytes.size() - start) fail(owner, "the array ends within its header");
  NpyHeader header;
  header.size = start + size;
  HeaderText(bytes.substr(start, size), owner).parse(header);
  return header;
}

std::string npy_header(DType dtype, const std::vector<std::int64_t>& shape, const std::string& owner) {
  std::string_view name;
  for (const NpyDtype& known : npy_dtypes)
    if (known.dtype == dtype) name = known.name;
  if (name.empty())
    throw UserError(fmt::format("{} has elements of {}, which NumPy does not have", owner, lathe::name(dtype)),
                    "npz_dtype", "write a .safetensors file");
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
  if (shape.size() == 1) sizes += ",";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", name, sizes);
  constexpr std::size_t before = 10, alignment = 64;
  text.append(alignment - 1 - (before + text.size()) % alignment, ' ');
  text += '\n';
  std::string header(magic);
  for (const std::size_t byte : {std::size_t{1}, std::size_t{0}, text.size() & 0xff, text.size() >> 8})
    header += static_cast<char>(byte);
  return header + text;
}

}  // namespace lathe
