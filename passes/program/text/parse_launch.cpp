#include "passes/program/text/parse_launch.h"

#include <memory>

namespace lathe::detail {

using ir::detail::TokenKind;

namespace {

class LaunchParser {
 public:
  LaunchParser(GraphTokens& in, References& references) : in_(in), references_(references) {}

  Launch parse(const LaunchInfo& info) {
    Launch made{.buffers = {}, .dims = {}, .info = info, .loc = {}, .checks = {}};
    References::KernelUse use{in_.expect_word("kernel"), 0, {}, 0, 0};
    use.kernel = made.kernel = parse_int(in_, 0, "the number of a kernel");
    use.name = in_.expect(TokenKind::graph_name, "the name of the kernel");
    in_.expect("(");
    if (!in_.accept(")")) {
      do made.buffers.push_back(references_.use_buffer());
      while (in_.accept(","));
      if (!in_.accept(")")) in_.fail_expected("',' or ')'");
    }
    if (in_.accept_word("for")) do
        made.dims.push_back(parse_dim(in_));
      while (in_.accept(","));
    use.buffers = made.buffers.size();
    use.dims = made.dims.size();
    references_.use_kernel(std::move(use));
    in_.expect_word("as");
    made.info.role = parse_enumerator(in_, KernelRole::phases, "the role of the kernel, such as \"row reduction\"");
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

 private:
  Multiplier multiplier() {
    return parse_enumerator(in_, Multiplier::wgmma, "the multiplier of the kernel, such as \"fma\"");
  }

  void figure(Launch& into) {
    if (in_.accept_word("work")) {
      into.work = parse_dim(in_);
    } else if (in_.accept_word("flops")) {
      into.flops = parse_dim(in_);
    } else if (in_.accept_word("bytes")) {
      into.bytes = parse_dim(in_);
    } else if (in_.accept_word("if")) {
      into.condition = condition();
    } else if (in_.accept_word("partial")) {
      parse_list(in_, [&] { into.partial.push_back(parse_int(in_, 0, "the number of a parameter")); });
    } else if (in_.accept_word("reads")) {
      into.rows_read.push_back(rows_read());
    } else if (in_.accept_word("part")) {
      in_.expect_word("of");
      into.part_of = parse_value(in_).index;
    } else {
      in_.fail_expected("work, flops, bytes, if, partial, reads or part");
    }
  }

  /// "3 from 0 count 64*length rows 12 every 64*capacity"
  RowsRead rows_read() {
    RowsRead made{.parameter = parse_int(in_, 0, "the number of a parameter")};
    for (const auto& [word, size] :
         {std::pair{"from", &made.first}, {"count", &made.count}, {"rows", &made.rows}, {"every", &made.stride}}) {
      in_.expect_word(word);
      *size = parse_dim(in_);
    }
    return made;
  }

  /// "B*T below 96" or "B*T from 96"
  SizeCondition condition() {
    SizeCondition made{.size = parse_dim(in_)};
    made.is_below = in_.accept_word("below");
    if (!made.is_below) in_.expect_word("from");
    made.limit = parse_int(in_, 1, "the limit of the size");
    return made;
  }

  /// The lines below a launch: missed paths, messages of checks, candidates of a tuned matmul.
  void remarks(Launch& into) {
    for (;;) {
      if (in_.accept_word("not")) {
        Multiplier path = Multiplier::none;
        if (in_.accept_word("in")) {
          in_.expect_word("one");
          in_.expect_word("kernel");
        } else {
          in_.expect_word("by");
          path = multiplier();
        }
        into.info.missed.push_back({path, parse_quoted(in_, "the reason in double quotes")});
      } else if (in_.accept_word("message")) {
        into.checks.push_back(parse_quoted(in_, "a message in double quotes"));
      } else if (in_.accept_word("candidate")) {
        candidates(into);
      } else {
        return;
      }
    }
  }

  void candidates(Launch& into) {
    TuningCandidates made;
    into.candidate = parse_int(in_, 0, "the number of a candidate");
    in_.expect_word("of");
    parse_list(in_, [&] { made.names.push_back(parse_quoted(in_, "the name of a candidate in double quotes")); });
    in_.expect_word("for");
    made.problem = parse_quoted(in_, "the problem in double quotes");
    into.tuning = std::make_shared<const TuningCandidates>(std::move(made));
  }

  GraphTokens& in_;
  References& references_;
};

}  // namespace

Launch parse_launch(GraphTokens& in, References& references, const LaunchInfo& info) {
  return LaunchParser(in, references).parse(info);
}

}  // namespace lathe::detail
