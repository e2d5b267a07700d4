#include "passes/fusion/text/written_regions.h"

#include <fmt/core.h>

#include <limits>

#include "ir/support/nearest.h"

namespace lathe {

using namespace ir::detail;

namespace {

class WrittenRegionsParser {
 public:
  explicit WrittenRegionsParser(GraphTokens& in) : in_(in) {}

  WrittenRegions parse() {
    WrittenRegions found;
    while (in_.peek().is_word("region")) found.regions.push_back(region(static_cast<int>(found.regions.size())));
    if (in_.accept_word("computed")) {
      for (const char* word : {"by", "their", "readers"}) in_.expect_word(word);
      found.inlined = nodes();
    }
    if (in_.accept_word("stored")) {
      in_.expect_word("constants");
      found.constants = nodes();
    }
    return found;
  }

 private:
  /// region 1 attention over [n, m]: rows along dim 0
  WrittenRegion region(int number) {
    WrittenRegion made{.first = in_.take(), .domain = {}};
    const Token at = in_.peek();
    if (parse_integer(in_) != number) in_.fail(at, fmt::format("this is region {}", number));
    made.kind = kind();
    in_.expect_word("over");
    made.domain = parse_shape(in_);
    if (in_.accept(":")) data(made);
    while (in_.peek().kind == TokenKind::word && !at_end()) made.members.push_back(member());
    if (made.members.empty()) in_.fail_expected("a member of the region");
    return made;
  }

  bool at_end() const {
    const Token& next = in_.peek();
    return next.is_word("region") || next.is_word("computed") || next.is_word("graph") ||
           (next.is_word("stored") && in_.after().is_word("constants"));
  }

  RegionKind kind() {
    std::vector<std::string_view> names;
    for (int i = 0; i < region_kinds; ++i) names.push_back(name(static_cast<RegionKind>(i)));
    const Token token = in_.expect(TokenKind::word, "the kind of the region, such as rows or product");
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == token.spelling) return static_cast<RegionKind>(i);
    in_.fail(token, fmt::format("there is no kind of region {}", token.spelling),
             did_you_mean_or_list(std::string(token.spelling), names, "the kinds are"));
  }

  void data(WrittenRegion& into) {
    if (into.kind == RegionKind::attention) {
      for (const char* word : {"rows", "along", "dim"}) in_.expect_word(word);
      into.row = number();
      while (in_.accept(",")) {
        const bool sequential = in_.accept_word("sequential");
        if (!sequential && !in_.accept_word("accumulated")) in_.fail_expected("'sequential' or 'accumulated'");
        in_.expect_word("dims");
        (sequential ? into.sequential : into.accumulated) = dims();
      }
      return;
    }
    if (into.kind != RegionKind::rows)
      in_.fail_expected("a member of the region", "only rows and attention regions have data of their own");
    into.inner = number();
    in_.expect_word("trailing");
    if (!in_.accept_word("dim")) in_.expect_word("dims");
    in_.expect_word("reduced");
  }

  /// output product  stored  %10 contract : f32[n, 4] dims [0, 1] of [0, 2] in %12
  WrittenMember member() {
    WrittenMember made{.first = in_.take(), .role = {}, .value = {}, .op = {}, .type = {}};
    made.role = made.first.spelling;
    if (made.role == "output") made.role += " " + std::string(in_.expect_word("product").spelling);
    made.stored = in_.accept_word("stored");
    const auto [value, op] = node();
    made.value = value;
    made.op = op;
    in_.expect(":");
    made.type = ir::detail::parse_type(in_);
    if (in_.accept_word("dims")) {
      made.dims = dims();
      made.space = in_.accept_word("of") ? dims() : *made.dims;
    }
    if (in_.accept_word("in")) made.in = in_.expect(TokenKind::value, "the value in whose storage this one is");
    return made;
  }

  std::vector<WrittenNode> nodes() {
    std::vector<WrittenNode> found;
    in_.expect(":");
    do found.push_back(node());
    while (in_.accept(","));
    return found;
  }

  WrittenNode node() {
    const Token value = in_.expect(TokenKind::value, "a value of the graph, such as %4");
    return {value, in_.expect(TokenKind::word, "the name of the value's op")};
  }

  /// [0, 2, -]
  std::vector<int> dims() {
    std::vector<int> found;
    in_.expect("[");
    if (in_.accept("]")) return found;
    do found.push_back(in_.accept("-") ? -1 : number());
    while (in_.accept(","));
    if (!in_.accept("]")) in_.fail_expected("',' or ']'");
    return found;
  }

  int number() {
    const Token at = in_.peek();
    const std::int64_t given = parse_integer(in_);
    if (given < 0 || given > std::numeric_limits<int>::max()) in_.fail(at, "a dim of the domain is expected");
    return static_cast<int>(given);
  }

  GraphTokens& in_;
};

}  // namespace

WrittenRegions parse_written_regions(GraphTokens& in) { return WrittenRegionsParser(in).parse(); }

}  // namespace lathe
