#include "passes/program/text/parse_program.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>
#include <unordered_map>

#include "ir/kernel/text/parser.h"
#include "ir/support/nearest.h"
#include "ir/support/numbers/float_environment.h"
#include "ir/tensor/text/parser_detail.h"
#include "passes/program/text/print_program.h"

namespace lathe {

using namespace ir::detail;

namespace {

/// Recursive-descent parser of one program. A buffer may be used before it is declared: uses have numbers in order of
/// their first use until all declarations are known.
class ProgramParser {
 public:
  ProgramParser(GraphTokens& in, const kernel::IntrinsicFamily& also) : in_(in), also_(also) {}

  Program parse() {
    if (!in_.peek().is_word("program"))
      in_.fail_expected("'program'", "a program starts with: program @name, 3 regions");
    in_.take();
    program_.name = in_.expect(TokenKind::graph_name, "the program's name, such as @step").value;
    in_.expect(",");
    program_.regions = number(0, "a number of regions");
    if (!in_.accept_word("region")) in_.expect_word("regions");
    while (in_.peek().kind != TokenKind::end) statement();
    resolve();
    return std::move(program_);
  }

 private:
  void statement() {
    using Parse = void (ProgramParser::*)();
    static constexpr std::pair<std::string_view, Parse> keywords[] = {
        {"collective", &ProgramParser::collective}, {"region", &ProgramParser::region},
        {"launch", &ProgramParser::launch},         {"input", &ProgramParser::slot},
        {"parameter", &ProgramParser::slot},        {"state", &ProgramParser::slot},
        {"output", &ProgramParser::slot},           {"buffer", &ProgramParser::buffer},
        {"check", &ProgramParser::check},           {"recomputed", &ProgramParser::recomputed},
        {"kernel", &ProgramParser::kernel}};
    std::vector<std::string_view> names;
    for (const auto& [word, parse] : keywords) {
      if (in_.peek().is_word(word)) return (this->*parse)();
      names.push_back(word);
    }
    if (in_.peek().kind != TokenKind::word) in_.fail_expected("a statement, such as launch or buffer");
    in_.fail(in_.peek(), fmt::format("there is no statement {}", in_.peek().spelling),
             did_you_mean_or_list(std::string(in_.peek().spelling), names, "the statements are"));
  }

  int number(int least, std::string_view what) {
    const Token at = in_.peek();
    const std::int64_t given = parse_integer(in_);
    if (given < least || given > std::numeric_limits<int>::max())
      in_.fail(at, fmt::format("expected {}, found {}", what, given));
    return static_cast<int>(given);
  }

  /// Takes the number of a statement, which are in order.
  void ordinal(std::size_t expected) {
    const Token at = in_.peek();
    if (parse_integer(in_) != static_cast<std::int64_t>(expected))
      in_.fail(at, fmt::format("this has the number {}", expected), "numbers start at 0 and are in order");
    in_.expect(":");
  }

  /// Takes a word, or a name in double quotes.
  Token name(std::string_view what) {
    if (in_.peek().kind != TokenKind::word && in_.peek().kind != TokenKind::text) in_.fail_expected(what);
    return in_.take();
  }
  static std::string text_of(const Token& token) {
    return token.kind == TokenKind::text ? token.value : std::string(token.spelling);
  }
  std::string quoted_text(std::string_view what) { return in_.expect(TokenKind::text, what).value; }

  /// Takes a text that is `words` of one of the enumerators up to `last`.
  template <class Enum>
  Enum one_of(Enum last, std::string_view what) {
    const Token token = in_.expect(TokenKind::text, what);
    std::vector<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (words(static_cast<Enum>(i)) == token.value) return static_cast<Enum>(i);
      names.push_back(words(static_cast<Enum>(i)));
    }
    in_.fail(token, fmt::format("there is no {}", token.spelling),
             did_you_mean_or_list(token.value, names, "known are"));
  }

  int use_buffer() {
    const Token token = name("the name of a buffer");
    const auto [entry, is_new] = uses_.try_emplace(text_of(token), static_cast<int>(first_uses_.size()));
    if (is_new) first_uses_.push_back(token);
    return entry->second;
  }

  Location location() { return parse_location(in_).value_or(Location()); }

  /// %6 gather "x" loc("a.cpp":3), or - copy "w"
  LaunchOp op() {
    LaunchOp op;
    if (!in_.accept("-")) op.value = value();
    const Token token = in_.expect(TokenKind::word, "the name of an op");
    if (!token.is_word("copy")) {
      op.op = ir::find_op(token.spelling);
      if (!op.op) in_.fail(token, fmt::format("there is no op '{}'", token.spelling), "docs/ops.md lists the ops");
    }
    if (in_.peek().kind == TokenKind::text) op.name = in_.take().value;
    return op;
  }

  ir::ValueId value() {
    const Token token = in_.expect(TokenKind::value, "a value of the graph, such as %4, or '-'");
    std::int32_t index = -1;
    const std::string& text = token.value;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc() || stop != text.data() + text.size() || token.was_quoted)
      in_.fail(token, "values of a program are numbers");
    return {index};
  }

  std::optional<RegionKind> region_kind() {
    if (in_.peek().kind != TokenKind::word) return std::nullopt;
    for (int i = 0; i < region_kinds; ++i)
      if (in_.accept_word(lathe::name(static_cast<RegionKind>(i)))) return static_cast<RegionKind>(i);
    return std::nullopt;
  }

  /// region 0 rows, and the ops of its launches
  void region() {
    in_.take();
    region_ = {};
    region_.region = number(-1, "the number of a region");
    region_.kind = region_kind();
    while (in_.peek().kind == TokenKind::value || in_.peek().is("-")) {
      region_.ops.push_back(op());
      region_.ops.back().loc = location();
    }
  }

  void launch() {
    in_.take();
    ordinal(program_.launches.size());
    program_.launches.push_back(launch(region_));
  }

  /// kernel 0 @k0_rows(x, "%1 exp") for n
  ///   as "row reduction", work 8, flops 4*n, bytes 8*n, partial [1], part of %4
  Launch launch(const LaunchInfo& info) {
    Launch made{.buffers = {}, .dims = {}, .info = info, .loc = {}, .checks = {}};
    KernelUse use{in_.expect_word("kernel"), 0, {}, 0, 0};
    use.kernel = made.kernel = number(0, "the number of a kernel");
    use.name = in_.expect(TokenKind::graph_name, "the name of the kernel");
    in_.expect("(");
    if (!in_.accept(")")) {
      do made.buffers.push_back(use_buffer());
      while (in_.accept(","));
      if (!in_.accept(")")) in_.fail_expected("',' or ')'");
    }
    if (in_.accept_word("for")) do
        made.dims.push_back(parse_dim(in_));
      while (in_.accept(","));
    use.buffers = made.buffers.size();
    use.dims = made.dims.size();
    kernel_uses_.push_back(std::move(use));
    in_.expect_word("as");
    made.info.role = one_of(KernelRole::fold_ranks, "the role of the kernel, such as \"row reduction\"");
    if (in_.accept_word("by")) made.info.multiplier = multiplier();
    while (in_.accept(",")) figure(made);
    const std::optional<Location> loc = parse_location(in_);
    if (loc)
      made.loc = *loc;
    else if (!made.info.ops.empty())
      made.loc = made.info.ops.back().loc;
    remarks(made);
    return made;
  }

  Multiplier multiplier() { return one_of(Multiplier::wgmma, "the multiplier of the kernel, such as \"fma\""); }

  void figure(Launch& into) {
    if (in_.accept_word("work")) {
      into.work = parse_dim(in_);
    } else if (in_.accept_word("flops")) {
      into.flops = parse_dim(in_);
    } else if (in_.accept_word("bytes")) {
      into.bytes = parse_dim(in_);
    } else if (in_.accept_word("partial")) {
      list([&] { into.partial.push_back(number(0, "the number of a parameter")); });
    } else if (in_.accept_word("part")) {
      in_.expect_word("of");
      into.part_of = value().index;
    } else {
      in_.fail_expected("work, flops, bytes, partial or part");
    }
  }

  /// The lines below a launch: missed paths, messages of checks, candidates of a tuned matmul.
  void remarks(Launch& into) {
    for (;;) {
      if (in_.accept_word("not")) {
        in_.expect_word("by");
        const Multiplier path = multiplier();
        into.info.missed.push_back({path, quoted_text("the reason in double quotes")});
      } else if (in_.accept_word("message")) {
        into.checks.push_back(quoted_text("a message in double quotes"));
      } else if (in_.accept_word("candidate")) {
        candidates(into);
      } else {
        return;
      }
    }
  }

  void candidates(Launch& into) {
    TuningCandidates made;
    into.candidate = number(0, "the number of a candidate");
    in_.expect_word("of");
    list([&] { made.names.push_back(quoted_text("the name of a candidate in double quotes")); });
    in_.expect_word("for");
    made.problem = quoted_text("the problem in double quotes");
    into.tuning = std::make_shared<const TuningCandidates>(std::move(made));
  }

  /// [a, b]
  template <class Item>
  void list(const Item& item) {
    in_.expect("[");
    if (in_.accept("]")) return;
    do item();
    while (in_.accept(","));
    if (!in_.accept("]")) in_.fail_expected("',' or ']'");
  }

  /// collective 0: all_reduce along data=4 by 1, during launches 2..5
  void collective() {
    in_.take();
    ordinal(program_.collectives.size());
    Collective made;
    made.kind = collective_kind();
    in_.expect_word("along");
    made.axis = text_of(name("the name of a mesh axis"));
    in_.expect("=");
    made.ranks = number(1, "a number of processes");
    if (in_.accept_word("by")) made.offset = number(0, "a distance between processes");
    in_.expect(",");
    if (in_.accept_word("before")) {
      in_.expect_word("launch");
      made.start = made.done = number(0, "the number of a launch");
    } else if (in_.accept_word("after")) {
      in_.expect_word("the");
      in_.expect_word("launches");
      made.start = made.done = after_all;
    } else {
      in_.expect_word("during");
      in_.expect_word("launches");
      made.start = number(0, "the number of a launch");
      in_.expect("..");
      made.done = number(made.start, "the number of the last launch") + 1;
    }
    while (in_.peek().kind == TokenKind::value || in_.peek().is("-")) made.parts.push_back(part());
    if (made.parts.empty()) in_.fail_expected("a value of the collective, such as %4");
    program_.collectives.push_back(std::move(made));
  }

  ir::CollectiveKind collective_kind() {
    static constexpr std::pair<std::string_view, ir::CollectiveKind> kinds[] = {
        {"all_reduce", ir::CollectiveKind::all_reduce},
        {"reduce_scatter", ir::CollectiveKind::reduce_scatter},
        {"all_gather", ir::CollectiveKind::all_gather},
        {"all_to_all", ir::CollectiveKind::all_to_all},
        {"send_recv", ir::CollectiveKind::send_recv}};
    for (const auto& [word, kind] : kinds)
      if (in_.accept_word(word)) return kind;
    in_.fail_expected("all_reduce, reduce_scatter, all_gather, all_to_all or send_recv");
  }

  /// %4 all_reduce "loss" : f32[n] from "%3 sum" to "%4 all_reduce", received "%4 pieces", window 1024
  Collective::Part part() {
    Collective::Part part;
    part.op = op();
    in_.expect(":");
    parse_dtype();
    part.elements = bracketed_dim();
    in_.expect_word("from");
    part.from = use_buffer();
    in_.expect_word("to");
    part.to = use_buffer();
    while (in_.accept(",")) {
      if (in_.accept_word("received"))
        part.received = use_buffer();
      else if (in_.accept_word("folded"))
        part.folded = use_buffer();
      else if (in_.accept_word("window"))
        part.window = parse_integer(in_);
      else
        in_.fail_expected("received, folded or window");
    }
    part.loc = part.op.loc = location();
    if (in_.accept_word("fold")) {
      in_.expect_word("in");
      in_.expect_word("region");
      LaunchInfo info{
          .kind = RegionKind::collective, .region = number(-1, "the number of a region"), .ops = {part.op}};
      in_.expect(":");
      part.fold = launch(info);
    }
    return part;
  }

  DType parse_dtype() {
    const auto dtype = lathe::parse_dtype(in_.peek().spelling);
    if (!dtype) in_.fail_expected("a dtype, such as f32");
    in_.take();
    return *dtype;
  }

  Dim bracketed_dim() {
    in_.expect("[");
    Dim dim = parse_dim(in_);
    in_.expect("]");
    return dim;
  }

  /// input x: f32[n, 8] in x
  void slot() {
    const Token kind = in_.take();
    Program::Slot slot{text_of(name("the name of an argument or output")), f32, {}, -1};
    slot.is_parameter = kind.is_word("parameter");
    in_.expect(":");
    slot.dtype = parse_dtype();
    slot.shape = parse_shape(in_);
    in_.expect_word("in");
    slot.buffer = use_buffer();
    if (in_.accept(",")) {
      in_.expect_word("updated");
      slot.is_updated = true;
    }
    (kind.is_word("input")    ? program_.inputs
     : kind.is_word("output") ? program_.outputs
                              : program_.states)
        .push_back(std::move(slot));
  }

  ProgramBuffer::Kind buffer_kind() {
    for (int i = 0; i <= static_cast<int>(ProgramBuffer::Kind::scratch); ++i)
      if (in_.accept_word(lathe::name(static_cast<ProgramBuffer::Kind>(i))))
        return static_cast<ProgramBuffer::Kind>(i);
    in_.fail_expected("input, state, output, constant, temporary or scratch");
  }

  /// buffer "%1 exp": temporary f32[8*n] named "%1 exp" with room loc("a.cpp":3)
  void buffer() {
    in_.take();
    const Token label = name("the name of a buffer");
    const auto number = static_cast<int>(program_.buffers.size());
    if (!declared_.try_emplace(text_of(label), number).second)
      in_.fail(label, fmt::format("{} is declared already", label.spelling), "rename this buffer");
    in_.expect(":");
    ProgramBuffer made{.name = text_of(label), .data = {}, .loc = {}};
    made.kind = buffer_kind();
    made.dtype = parse_dtype();
    made.elements = bracketed_dim();
    if (in_.accept_word("named")) made.name = quoted_text("the name in double quotes");
    if (in_.accept_word("with")) {
      in_.expect_word("room");
      made.has_room = true;
    }
    if (in_.accept("=")) list([&] { made.data.push_back(parse_number(in_)); });
    made.loc = location();
    program_.buffers.push_back(std::move(made));
  }

  void check() { program_.checks.push_back(parse_check(in_).check); }

  /// recomputed 4 of "gelu f32[n] gpt.cpp:83", 4096 bytes together
  void recomputed() {
    in_.take();
    RecomputedKind kind;
    kind.values = number(0, "a number of values");
    in_.expect_word("of");
    kind.what = quoted_text("a description in double quotes");
    in_.expect(",");
    kind.bytes_together = parse_integer(in_);
    in_.expect_word("bytes");
    in_.expect_word("together");
    program_.recomputed.push_back(std::move(kind));
  }

  void kernel() { program_.kernels.push_back(kernel::parse_kernel(in_, also_)); }

  /// Replaces the numbers of uses by those of the declared buffers, and checks the uses of kernels.
  void resolve() {
    std::vector<int> buffers;
    std::vector<std::string_view> names;
    for (const auto& [label, number] : declared_) names.push_back(label);
    for (const Token& use : first_uses_) {
      const auto found = declared_.find(text_of(use));
      if (found == declared_.end())
        in_.fail(use, fmt::format("there is no buffer {}", use.spelling), did_you_mean(text_of(use), names));
      buffers.push_back(found->second);
    }
    const auto resolve = [&](int& buffer) {
      if (buffer >= 0) buffer = buffers[static_cast<std::size_t>(buffer)];
    };
    const auto resolve_all = [&](Launch& launch) {
      for (int& buffer : launch.buffers) resolve(buffer);
    };
    for (Launch& launch : program_.launches) resolve_all(launch);
    for (Collective& collective : program_.collectives) {
      if (collective.start == after_all)
        collective.start = collective.done = static_cast<int>(program_.launches.size());
      for (Collective::Part& part : collective.parts) {
        for (int* buffer : {&part.from, &part.to, &part.received, &part.folded}) resolve(*buffer);
        if (part.fold) resolve_all(*part.fold);
      }
    }
    for (auto* slots : {&program_.inputs, &program_.states, &program_.outputs})
      for (Program::Slot& slot : *slots) resolve(slot.buffer);
    for (const KernelUse& use : kernel_uses_) check(use);
  }

  /// The properties of a launch that its kernel must match.
  struct KernelUse {
    Token at;
    int kernel;
    Token name;
    std::size_t buffers, dims;
  };

  void check(const KernelUse& use) const {
    if (use.kernel >= static_cast<int>(program_.kernels.size()))
      in_.fail(use.at, fmt::format("there is no kernel {}", use.kernel),
               fmt::format("the program has {} kernels", program_.kernels.size()));
    const kernel::Kernel& kernel = program_.kernels[static_cast<std::size_t>(use.kernel)];
    if (kernel.name != use.name.value)
      in_.fail(use.name, fmt::format("kernel {} is called @{}", use.kernel, kernel.name));
    const auto buffers = static_cast<std::size_t>(kernel.parameter_count());
    if (use.buffers != buffers || use.dims != kernel.dims.size())
      in_.fail(use.name, fmt::format("{} buffers and {} dims are given, and @{} has {} and {}", use.buffers, use.dims,
                                     kernel.name, buffers, kernel.dims.size()));
  }

  static constexpr int after_all = -1;  // Collective::start until the number of launches is known

  GraphTokens& in_;
  const kernel::IntrinsicFamily& also_;
  Program program_;
  LaunchInfo region_;                          // of the next launches
  std::unordered_map<std::string, int> uses_;  // label of a buffer to the number of its first use
  std::vector<Token> first_uses_;
  std::unordered_map<std::string, int> declared_;  // label to buffer
  std::vector<KernelUse> kernel_uses_;
};

}  // namespace

Program parse_program(std::string_view text, std::string_view file, const kernel::IntrinsicFamily& also) {
  const FloatEnvironment environment;
  const Source source(text, file);
  const ir::ParseLimits limits;
  if (text.size() > limits.bytes) source.fail(0, 1, fmt::format("the text has more than {} bytes", limits.bytes));
  GraphTokens in(source, limits);
  return ProgramParser(in, also).parse();
}

}  // namespace lathe
