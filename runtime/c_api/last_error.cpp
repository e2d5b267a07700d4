#include <array>
#include <new>
#include <string>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/location.h"
#include "runtime/c_api/handles.h"

namespace lathe::c_api {

namespace {

/// An error by the parts of lathe_last_error().
struct ErrorParts {
  lathe_status status = LATHE_OK;
  std::array<std::string, 5> parts = {};
  std::int32_t line = 0;
};

/// The last error of this thread. C functions have no other place for it.
thread_local ErrorParts last_error;

/// Returns the lines of a text without their indentation by two spaces.
std::string unindented_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    line.remove_prefix(line.starts_with("  ") ? 2 : 0);
    if (!lines.empty()) lines += '\n';
    lines += line;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// Splits the text of an error: "LOCATION: MESSAGE  [LABEL]", then the lines of the hint.
ErrorParts parts_of(std::string_view text, std::string_view location, std::string_view label) {
  const auto end = text.find('\n');
  std::string_view message = text.substr(0, end);
  if (!location.empty() && message.starts_with(location)) message.remove_prefix(location.size());
  const std::string ending = "  [" + std::string(label) + "]";
  if (message.ends_with(ending)) message.remove_suffix(ending.size());
  ErrorParts error;
  error.parts[LATHE_ERROR_TEXT] = text;
  error.parts[LATHE_ERROR_MESSAGE] = message;
  error.parts[LATHE_ERROR_LABEL] = label;
  if (end != std::string_view::npos) error.parts[LATHE_ERROR_HINT] = unindented_lines(text.substr(end + 1));
  return error;
}

ErrorParts parts_of(const UserError& user) {
  const Location& at = user.location();
  ErrorParts error = parts_of(user.what(), at.known() ? at.to_string() + ": " : "", user.label());
  error.status = user.label() == "out_of_memory" ? LATHE_OUT_OF_MEMORY : LATHE_USER_ERROR;
  error.parts[LATHE_ERROR_FILE] = at.file();
  error.line = at.line();
  return error;
}

/// The text of a syntax error starts with "FILE:LINE:COLUMN: ".
ErrorParts parts_of(const ParseError& syntax) {
  const std::string_view text = syntax.what();
  const std::string place = ":" + std::to_string(syntax.line()) + ":" + std::to_string(syntax.column()) + ": ";
  const auto at = text.find(place);
  ErrorParts error = parts_of(
      text, at == std::string_view::npos ? std::string_view() : text.substr(0, at + place.size()), "parse_error");
  error.status = LATHE_PARSE_ERROR;
  error.parts[LATHE_ERROR_FILE] = text.substr(0, at == std::string_view::npos ? 0 : at);
  error.line = syntax.line();
  return error;
}

ErrorParts current_error() {
  ErrorParts error;
  try {
    throw;
  } catch (const UserError& user) {
    return parts_of(user);
  } catch (const ParseError& syntax) {
    return parts_of(syntax);
  } catch (const std::bad_alloc&) {
    error.status = LATHE_OUT_OF_MEMORY;
  } catch (const std::exception& other) {
    error = parts_of(other.what(), {}, "internal_error");
    error.status = LATHE_INTERNAL_ERROR;
  } catch (...) {
    error = parts_of("an exception of an unknown type", {}, "internal_error");
    error.status = LATHE_INTERNAL_ERROR;
  }
  return error;
}

/// The parts of an error without memory for its text.
constexpr const char* without_memory[] = {"out of memory  [out_of_memory]\n  free memory, or use smaller sizes",
                                          "out of memory", "out_of_memory", "free memory, or use smaller sizes", ""};

}  // namespace

lathe_status record_error() noexcept {
  try {
    last_error = current_error();
  } catch (...) {
    last_error.status = LATHE_OUT_OF_MEMORY;
    for (std::string& part : last_error.parts) part.clear();
    last_error.line = 0;
  }
  return last_error.status;
}

void throw_null(std::string_view name) {
  throw UserError(std::string(name) + " is NULL", "null_argument", "give a pointer to an object");
}

const char* name_of(HandleKind kind) {
  switch (kind) {
    case HandleKind::graph: return "lathe_graph";
    case HandleKind::options: return "lathe_options";
    case HandleKind::executable: return "lathe_executable";
    case HandleKind::call: return "lathe_call";
    case HandleKind::parameters: return "lathe_parameters";
  }
  return "lathe handle";
}

void throw_handle_kind(HandleKind expected) {
  throw UserError(std::string("the handle is no ") + name_of(expected), "handle_kind",
                  "give a handle of this kind that was not destroyed");
}

}  // namespace lathe::c_api

using namespace lathe::c_api;

int32_t lathe_c_abi_version(void) { return LATHE_C_ABI_VERSION; }

const char* lathe_version(void) { return LATHE_VERSION; }

const char* lathe_last_error(int32_t part) {
  if (part < 0 || std::cmp_greater_equal(part, last_error.parts.size())) return nullptr;
  if (last_error.status == LATHE_OUT_OF_MEMORY && last_error.parts[LATHE_ERROR_TEXT].empty())
    return without_memory[part];
  return last_error.parts[static_cast<std::size_t>(part)].c_str();
}

int32_t lathe_last_error_line(void) { return last_error.line; }

lathe_status lathe_last_error_status(void) { return last_error.status; }
