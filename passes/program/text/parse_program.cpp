#include "passes/program/text/parse_program.h"

#include <fmt/core.h>

#include "ir/kernel/text/parser.h"
#include "ir/support/nearest.h"
#include "ir/support/numbers/float_environment.h"
#include "passes/program/text/parse_launch.h"
#include "passes/program/text/print_program.h"

namespace lathe {

using namespace ir::detail;
using namespace lathe::detail;

namespace {

/// Recursive-descent parser of one program. A buffer may be used before it is declared (References).
class ProgramParser {
 public:
  ProgramParser(GraphTokens& in, const kernel::IntrinsicFamily& also) : in_(in), also_(also), references_(in) {}

  Program parse() {
    if (!in_.peek().is_word("program"))
      in_.fail_expected("'program'", "a program starts with: program @name, 3 regions");
    in_.take();
    program_.name = in_.expect(TokenKind::graph_name, "the program's name, such as @step").value;
    in_.expect(",");
    program_.regions = parse_int(in_, 0, "a number of regions");
    if (!in_.accept_word("region")) in_.expect_word("regions");
    while (in_.peek().kind != TokenKind::end) statement();
    references_.resolve(program_);
    return std::move(program_);
  }

 private:
  void statement() {
    using Parse = void (ProgramParser::*)();
    static constexpr std::pair<std::string_view, Parse> keywords[] = {
        {"collective", &ProgramParser::collective}, {"loop", &ProgramParser::loop},
        {"region", &ProgramParser::region},         {"launch", &ProgramParser::launch},
        {"joined", &ProgramParser::joined},         {"input", &ProgramParser::slot},
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
    region_.region = parse_int(in_, -1, "the number of a region");
    region_.kind = region_kind();
    while (in_.peek().kind == TokenKind::value || in_.peek().is("-")) {
      region_.ops.push_back(parse_op(in_));
      region_.ops.back().loc = parse_loc(in_);
    }
  }

  void launch() {
    in_.take();
    parse_ordinal(in_, program_.launches.size());
    program_.launches.push_back(parse_launch(in_, references_, region_));
  }

  /// launches 3..9
  void launches(int& first, int& end) {
    in_.expect_word("launches");
    first = parse_int(in_, 0, "the number of a launch");
    in_.expect("..");
    const Token last = in_.peek();
    end = parse_int(in_, first, "the number of the last launch") + 1;
    references_.use_launch({last, end - 1});
  }

  /// joined 0: launches 3..9 by kernel 4 @phases(x, y)
  void joined() {
    in_.take();
    parse_ordinal(in_, program_.joined.size());
    JoinedLaunches made;
    launches(made.first, made.end);
    in_.expect_word("by");
    made.launch = parse_launch(in_, references_, {});
    program_.joined.push_back(std::move(made));
  }

  /// loop 0: "lstm" launches 3..7, T times
  void loop() {
    in_.take();
    parse_ordinal(in_, program_.loops.size());
    ProgramLoop made;
    made.name = parse_quoted(in_, "the name of the loop in double quotes");
    launches(made.first, made.end);
    in_.expect(",");
    made.trips = parse_dim(in_);
    in_.expect_word("times");
    made.loc = parse_loc(in_);
    program_.loops.push_back(std::move(made));
  }

  /// collective 0: all_reduce along data=4 by 1, during launches 2..5
  void collective() {
    in_.take();
    parse_ordinal(in_, program_.collectives.size());
    Collective made;
    made.kind = collective_kind();
    in_.expect_word("along");
    made.axis = text_of(take_name(in_, "the name of a mesh axis"));
    in_.expect("=");
    made.ranks = parse_int(in_, 1, "a number of processes");
    if (in_.accept_word("by")) made.offset = parse_int(in_, 0, "a distance between processes");
    in_.expect(",");
    if (in_.accept_word("before")) {
      in_.expect_word("launch");
      made.start = made.done = parse_int(in_, 0, "the number of a launch");
    } else if (in_.accept_word("after")) {
      in_.expect_word("the");
      in_.expect_word("launches");
      made.start = made.done = References::after_all;
    } else {
      in_.expect_word("during");
      in_.expect_word("launches");
      made.start = parse_int(in_, 0, "the number of a launch");
      in_.expect("..");
      made.done = parse_int(in_, made.start, "the number of the last launch") + 1;
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
    part.op = parse_op(in_);
    in_.expect(":");
    parse_dtype(in_);
    part.elements = parse_bracketed_dim(in_);
    in_.expect_word("from");
    part.from = references_.use_buffer();
    in_.expect_word("to");
    part.to = references_.use_buffer();
    while (in_.accept(",")) {
      if (in_.accept_word("received"))
        part.received = references_.use_buffer();
      else if (in_.accept_word("folded"))
        part.folded = references_.use_buffer();
      else if (in_.accept_word("window"))
        part.window = parse_integer(in_);
      else
        in_.fail_expected("received, folded or window");
    }
    part.loc = part.op.loc = parse_loc(in_);
    if (in_.accept_word("fold")) {
      in_.expect_word("in");
      in_.expect_word("region");
      LaunchInfo info{
          .kind = RegionKind::collective, .region = parse_int(in_, -1, "the number of a region"), .ops = {part.op}};
      in_.expect(":");
      part.fold = parse_launch(in_, references_, info);
    }
    return part;
  }

  /// input x: f32[n, 8] in x
  void slot() {
    const Token kind = in_.take();
    Program::Slot slot{text_of(take_name(in_, "the name of an argument or output")), f32, {}, -1};
    slot.is_parameter = kind.is_word("parameter");
    in_.expect(":");
    slot.dtype = parse_dtype(in_);
    slot.shape = parse_shape(in_);
    in_.expect_word("in");
    slot.buffer = references_.use_buffer();
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
    for (int i = 0; i <= static_cast<int>(ProgramBuffer::Kind::slice); ++i)
      if (in_.accept_word(lathe::name(static_cast<ProgramBuffer::Kind>(i))))
        return static_cast<ProgramBuffer::Kind>(i);
    in_.fail_expected("input, state, output, constant, temporary, scratch or slice");
  }

  /// of x by loop 0, stride B*H, reversed
  ProgramBuffer::Slice slice() {
    ProgramBuffer::Slice made;
    in_.expect_word("of");
    made.of = references_.use_buffer();
    in_.expect_word("by");
    in_.expect_word("loop");
    const Token loop = in_.peek();
    made.loop = parse_int(in_, 0, "the number of a loop");
    references_.use_loop({loop, made.loop});
    in_.expect(",");
    in_.expect_word("stride");
    made.stride = parse_dim(in_);
    if (in_.accept(",")) {
      in_.expect_word("reversed");
      made.reverse = true;
    }
    return made;
  }

  /// buffer "%1 exp": temporary f32[8*n] named "%1 exp" with room loc("a.cpp":3)
  void buffer() {
    in_.take();
    const Token label = take_name(in_, "the name of a buffer");
    const auto number = static_cast<int>(program_.buffers.size());
    references_.declare_buffer(label, number);
    in_.expect(":");
    ProgramBuffer made{.name = text_of(label), .data = {}, .loc = {}};
    made.kind = buffer_kind();
    made.dtype = parse_dtype(in_);
    made.elements = parse_bracketed_dim(in_);
    if (in_.accept_word("named")) made.name = parse_quoted(in_, "the name in double quotes");
    if (made.kind == ProgramBuffer::Kind::slice) made.slice = slice();
    if (in_.accept_word("with")) {
      in_.expect_word("room");
      made.has_room = true;
    }
    if (in_.accept("=")) parse_list(in_, [&] { made.data.push_back(parse_number(in_)); });
    made.loc = parse_loc(in_);
    program_.buffers.push_back(std::move(made));
  }

  void check() { program_.checks.push_back(parse_check(in_).check); }

  /// recomputed 4 of "gelu f32[n] gpt.cpp:83", 4096 bytes together
  void recomputed() {
    in_.take();
    RecomputedKind kind;
    kind.values = parse_int(in_, 0, "a number of values");
    in_.expect_word("of");
    kind.what = parse_quoted(in_, "a description in double quotes");
    in_.expect(",");
    kind.bytes_together = parse_integer(in_);
    in_.expect_word("bytes");
    in_.expect_word("together");
    program_.recomputed.push_back(std::move(kind));
  }

  void kernel() { program_.kernels.push_back(kernel::parse_kernel(in_, also_)); }

  GraphTokens& in_;
  const kernel::IntrinsicFamily& also_;
  Program program_;
  References references_;
  LaunchInfo region_;  // of the next launches
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
