#include "models/text/tokenizer/unicode/regex.h"

#include <fmt/core.h>

#include <array>
#include <cstdlib>

#include "ir/support/error.h"
#include "models/text/tokenizer/unicode/regex_syntax.h"
#include "runtime/files/file_io.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace lathe::text {

namespace {

// Limits of one match. Exceeding them is an error.
constexpr std::size_t largest_jit_stack = std::size_t{8} << 20;  // bytes
constexpr std::uint32_t heap_limit = 64 << 10;                   // KiB, for the interpreter
constexpr std::uint32_t match_limit = 20'000'000;                // backtracking steps

std::string message_of(int error) {
  std::array<PCRE2_UCHAR8, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR8 units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR8>(text.empty() ? "" : text.data()); }

}  // namespace

struct MatchMemory::Content {
  struct Counted {
    TextBudget budget;
    PCRE2_SIZE position = 0;  ///< of the last callout
    PCRE2_SIZE start = 0;     ///< start of the current attempt
  };
  static constexpr std::uint32_t auto_callout = 255;

  Content()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(64 << 10, largest_jit_stack, nullptr)) {
    LATHE_ASSERT(data && context && stack);
    pcre2_set_match_limit(context, match_limit);
    pcre2_set_heap_limit(context, heap_limit);
    pcre2_jit_stack_assign(context, nullptr, stack);
    pcre2_set_callout(context, count_work, this);
  }
  ~Content() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  /// Callout function. Counts the work since the last callout, which is bounded by a constant for each character that
  /// the position moved by or that is captured. Adds the callout's number.
  static int count_work(pcre2_callout_block* block, void* content) {
    auto& [text_budget, position, start] = static_cast<Content*>(content)->counted;
    const PCRE2_SIZE at = block->current_position;
    if (block->start_match != start) position = start = block->start_match;
    std::uint64_t work = 1 + (at > position ? at - position : position - at) / 8;
    position = at;
    if (block->callout_number != auto_callout) work += block->callout_number;
    for (std::uint32_t i = 1; i < block->capture_top; ++i) {
      const PCRE2_SIZE begin = block->offset_vector[2 * i], end = block->offset_vector[2 * i + 1];
      if (begin != PCRE2_UNSET && end != PCRE2_UNSET && end > begin) work += (end - begin) / 8;
    }
    return text_budget.match(work) ? 0 : PCRE2_ERROR_MATCHLIMIT;
  }

  Counted counted;
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

MatchMemory::MatchMemory() : content_(std::make_unique<Content>()) {}
MatchMemory::~MatchMemory() = default;
MatchMemory::MatchMemory(MatchMemory&&) noexcept = default;
TextBudget& MatchMemory::budget() { return content_->counted.budget; }

struct Regex::Code {
  ~Code() { pcre2_code_free(code); }
  pcre2_code* code = nullptr;
  bool is_machine_code = false;
  std::string pattern;
};

Regex::Regex(std::string_view pattern) {
  const TranslatedPattern translated = to_pcre2(pattern);
  compile(translated.text, pattern, !translated.counts_itself);
}

Regex Regex::native(const std::string& pattern) {
  Regex regex;
  regex.compile(pattern, pattern, false);
  return regex;
}

void Regex::compile(const std::string& pattern, std::string_view shown, bool counts_all) {
  auto made = std::make_shared<Code>();
  made->pattern = shown;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | (counts_all ? PCRE2_AUTO_CALLOUT : 0);
  made->code = pcre2_compile(units(pattern), pattern.size(), options, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!made->code)
    throw UserError(fmt::format("the regular expression {} is not understood: {}", quote(shown), message_of(error)),
                    "tokenizer_regex");
  made->is_machine_code = pcre2_jit_compile(made->code, PCRE2_JIT_COMPLETE) == 0;
  code_ = std::move(made);
}

bool Regex::search(std::string_view text, std::size_t from, MatchMemory& memory, Match& match) const {
  MatchMemory::Content& content = *memory.content_;
  content.counted.position = content.counted.start = from;
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (code_->is_machine_code)
    found = pcre2_jit_match(code_->code, units(text), text.size(), from, 0, content.data, content.context);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter's stack is on the heap
    found = pcre2_match(code_->code, units(text), text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, content.data,
                        content.context);
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0)
    throw UserError(fmt::format("the regular expression {} does not end on a text of {} bytes: {}",
                                quote(code_->pattern), text.size(), message_of(found)),
                    "tokenizer_regex");
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(content.data);
  const PCRE2_SPTR8 mark = pcre2_get_mark(content.data);
  match = {ends[0], ends[1], mark ? std::atoi(reinterpret_cast<const char*>(mark)) : -1};
  return true;
}

}  // namespace lathe::text
