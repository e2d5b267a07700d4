#include "ir/kernel/text/parser.h"

#include "ir/kernel/text/kernel_reader.h"
#include "ir/kernel/text/parse_expression.h"
#include "ir/support/nearest.h"

namespace lathe::kernel {

using syntax::Token;
using syntax::TokenKind;

namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 28;
constexpr int most_nesting = 128;

/// Recursive-descent parser of one kernel.
class KernelParser {
 public:
  KernelParser(syntax::TokenStream& tokens, const IntrinsicFamily& also)
      : reader_(tokens, also), in_(tokens), also_(also) {}

  Kernel parse() {
    if (!in_.peek().is_word("kernel"))
      in_.fail_expected("'kernel'", "a kernel reads: kernel @name(x: read f32, y: write f32; n) { ... }");
    in_.take();
    reader_.kernel.name = in_.expect(TokenKind::graph_name, "the kernel's name, such as @scale").value;
    parameters();
    in_.expect("{");
    while (in_.accept_word("note"))
      reader_.kernel.notes.push_back(in_.expect(TokenKind::text, "a note in double quotes").value);
    while (in_.peek().is_word("map")) map();
    while (in_.peek().is_word("kernel")) phase_kernel();
    statements(reader_.kernel.body);
    return std::move(reader_.kernel);
  }

 private:
  /// (x: read f32, y: write f32 aliased; rows, cols)
  void parameters() {
    in_.expect("(");
    if (!in_.peek().is(";") && !in_.peek().is(")")) reader_.list([&] { parameter(); });
    if (in_.accept(";")) reader_.list([&] { reader_.define_dim(reader_.name("the name of a dim")); });
    in_.expect(")");
  }

  void parameter() {
    const Token name = reader_.name("the name of a buffer");
    in_.expect(":");
    BufferInfo info;
    info.access = one_of(Access::read_write, in_.peek().spelling, "read, write or readwrite");
    info.dtype = reader_.dtype();
    info.noalias = !in_.accept_word("aliased");
    info.unaligned = in_.accept_word("unaligned");
    reader_.define_buffer(name, std::move(info));
  }

  /// Takes the token and returns the enumerator with the name `spelling`; `last` is the last enumerator.
  template <class Enum>
  Enum one_of(Enum last, std::string_view spelling, std::string_view what) {
    for (int i = 0; i <= static_cast<int>(last); ++i)
      if (kernel::name(static_cast<Enum>(i)) == spelling) {
        in_.take();
        return static_cast<Enum>(i);
      }
    in_.fail_expected(what);
  }

  /// map m0 = x[0] by 64 of k, 128 of rows by k
  void map() {
    in_.take();
    in_.expect_word(fmt::format("m{}", reader_.kernel.maps.size()));
    in_.expect("=");
    TensorMap map{.from = reader_.buffer(), .offset = reader_.element(), .sizes = {}, .strides = {}, .box = {}};
    in_.expect_word("by");
    reader_.list([&] {
      if (map.box.size() == most_map_dims) in_.fail(in_.peek(), fmt::format("more than {} dims", most_map_dims));
      map.box.push_back(reader_.number());
      in_.expect_word("of");
      map.sizes.push_back(reader_.value());
      if (map.sizes.size() == 1) return;
      in_.expect_word("by");
      map.strides.push_back(reader_.value());
    });
    reader_.kernel.maps.push_back(std::move(map));
  }

  /// The kernel of phases: kernel @row(x: read f32) { ... }
  void phase_kernel() {
    if (is_phase_) in_.fail(in_.peek(), "a kernel of phases inside a kernel of phases");
    KernelParser nested(in_, also_);
    nested.is_phase_ = true;
    reader_.kernel.phase_kernels.push_back(std::make_shared<const Kernel>(nested.parse()));
  }

  /// Parses statements up to "}".
  void statements(Block& into) {
    if (depth_ == most_nesting)
      in_.fail(in_.peek(), fmt::format("blocks are nested more than {} deep", most_nesting));
    ++depth_;
    reader_.scoped([&] {
      while (!in_.accept("}")) into.push_back(statement());
    });
    --depth_;
  }

  Statement statement() {
    using Parse = Statement (KernelParser::*)();
    static constexpr std::pair<std::string_view, Parse> keywords[] = {
        {"store", &KernelParser::store},       {"stream", &KernelParser::store},    {"scatter", &KernelParser::store},
        {"prefetch", &KernelParser::prefetch}, {"var", &KernelParser::declare},     {"set", &KernelParser::set},
        {"alloc", &KernelParser::alloc},       {"barrier", &KernelParser::barrier}, {"check", &KernelParser::check},
        {"for", &KernelParser::loop},          {"if", &KernelParser::branch}};
    const Token first = in_.peek();
    if (first.kind == TokenKind::value) return definition();
    if (first.kind != TokenKind::word) in_.fail_expected("a statement or '}'");
    for (const auto& [word, parse] : keywords)
      if (first.is_word(word)) return (this->*parse)();
    if (const IntrinsicRegionRecord* record = reader_.region(first.spelling)) return region(*record);
    const std::string_view name = first.spelling.substr(0, first.spelling.find('.'));
    if (const IntrinsicRecord* record = reader_.operation(name)) return operation(*record);
    std::vector<std::string_view> names = reader_.operation_names();
    for (const std::string_view known : reader_.region_names()) names.push_back(known);
    for (const auto& keyword : keywords) names.push_back(keyword.first);
    in_.fail(first, fmt::format("there is no statement {}", first.spelling), did_you_mean(first.spelling, names));
  }

  /// %3 = mul %1, n : f32
  Statement definition() {
    const Token name = in_.take();
    in_.expect("=");
    const Token first = in_.peek();
    Instruction made = parse_expression(reader_);
    if (const IntrinsicRecord* record = record_of(made); record && !record->gives_value)
      in_.fail(first, fmt::format("{} has no value", record->name), "write it as a statement");
    in_.expect(":");
    made.type = reader_.type();
    return {Compute{reader_.define_value(name, std::move(made))}};
  }

  /// An intrinsic without a value is a statement.
  Statement operation(const IntrinsicRecord& record) {
    if (record.gives_value)
      in_.fail(in_.peek(), fmt::format("{} has a value", record.name), "name its value: %0 = ... : f32");
    reader_.kernel.values.push_back(parse_expression(reader_));
    return {Compute{static_cast<ValueId>(reader_.kernel.values.size()) - 1}};
  }

  Statement store() {
    const Token verb = in_.take();
    Store made;
    made.streams = verb.is_word("stream");
    made.buffer = reader_.buffer();
    in_.expect("[");
    made.index = reader_.value();
    if (verb.is_word("scatter")) {
      made.kind = StoreKind::scatter;
    } else if (in_.accept_word("by")) {
      made.kind = StoreKind::strided;
      made.stride = reader_.value();
    }
    in_.expect("]");
    in_.expect("=");
    made.value = reader_.value();
    parse_suffix(reader_, made.mask, made.alignment);
    return {made};
  }

  Statement prefetch() {
    in_.take();
    const BufferId buffer = reader_.buffer();
    return {Prefetch{buffer, reader_.element()}};
  }

  /// var v0: f32x16 = %3
  Statement declare() {
    in_.take();
    const Token name = reader_.name("the name of a variable");
    in_.expect(":");
    const Type type = reader_.type();
    in_.expect("=");
    const ValueId value = reader_.value();
    return {SetVar{.var = reader_.define_var(name, type), .value = value, .declares = true}};
  }

  Statement set() {
    in_.take();
    const VarId var = reader_.var();
    in_.expect("=");
    return {SetVar{.var = var, .value = reader_.value()}};
  }

  /// alloc t: f32[64] @stack
  Statement alloc() {
    in_.take();
    const Token name = reader_.name("the name of a buffer");
    in_.expect(":");
    BufferInfo info{.name = {}, .dtype = reader_.dtype(), .access = Access::read_write};
    in_.expect("[");
    info.count = parse_integer(in_);
    in_.expect("]");
    const Token at = in_.peek();
    constexpr std::string_view what = "@stack, @register or @shared";
    info.space = one_of(Space::stack, at_name(), what);
    if (info.space == Space::parameter) in_.fail(at, fmt::format("expected {}, found {}", what, at.spelling));
    const auto id = static_cast<BufferId>(reader_.kernel.buffers.size());
    reader_.define_buffer(name, std::move(info));
    return {Alloc{id}};
  }

  /// Returns the name after the @ that is next, or nothing.
  std::string_view at_name() const {
    return in_.peek().kind == TokenKind::graph_name ? std::string_view(in_.peek().value) : std::string_view();
  }

  Statement barrier() {
    in_.take();
    return {Barrier{}};
  }

  Statement check() {
    in_.take();
    const ValueId condition = reader_.value();
    in_.expect_word("else");
    return {Check{condition, parse_integer(in_)}};
  }

  /// for i0 in 0..n step 16 @serial { ... }
  Statement loop() {
    in_.take();
    Loop made;
    const Token index = reader_.name("the name of an index, such as i0");
    in_.expect_word("in");
    made.lo = reader_.value();
    in_.expect("..");
    made.hi = reader_.value();
    in_.expect_word("step");
    made.step = reader_.value();
    made.kind = one_of(LoopKind::thread_z, at_name(), "the kind of the loop, such as @serial or @parallel");
    in_.expect("{");
    reader_.scoped([&] {
      made.index = reader_.define_value(index, {.op = Opcode::loop_index, .type = {i64, 1}});
      statements(made.body);
    });
    return {std::move(made)};
  }

  Statement branch() {
    in_.take();
    Branch made;
    made.condition = reader_.value();
    in_.expect("{");
    statements(made.then_block);
    if (in_.accept_word("else")) {
      in_.expect("{");
      statements(made.else_block);
    }
    return {std::move(made)};
  }

  Statement region(const IntrinsicRegionRecord& record) {
    in_.take();
    IntrinsicRegion made;
    reader_.scoped([&] {
      made = record.parse(reader_);
      for (const RegionBodyTraits& body : record.bodies) {
        if (!body.name.empty()) in_.expect_word(body.name);
        in_.expect("{");
        statements(made.bodies.emplace_back());
      }
    });
    return {std::move(made)};
  }

  KernelReader reader_;
  syntax::TokenStream& in_;
  const IntrinsicFamily& also_;
  int depth_ = 0;
  bool is_phase_ = false;
};

}  // namespace

Kernel parse_kernel(syntax::TokenStream& in, const IntrinsicFamily& also) { return KernelParser(in, also).parse(); }

std::vector<Kernel> parse_kernels(std::string_view text, std::string_view file, const IntrinsicFamily& also) {
  const syntax::Source source(text, file);
  if (text.size() > most_bytes) source.fail(0, 1, fmt::format("the text is longer than {} bytes", most_bytes));
  syntax::TokenStream tokens(source);
  std::vector<Kernel> kernels;
  while (tokens.peek().kind != TokenKind::end) kernels.push_back(KernelParser(tokens, also).parse());
  return kernels;
}

Kernel parse_kernel(std::string_view text, std::string_view file, const IntrinsicFamily& also) {
  const syntax::Source source(text, file);
  if (text.size() > most_bytes) source.fail(0, 1, fmt::format("the text is longer than {} bytes", most_bytes));
  syntax::TokenStream tokens(source);
  Kernel kernel = KernelParser(tokens, also).parse();
  if (tokens.peek().kind != TokenKind::end) tokens.fail_expected("the end of the text after the kernel's '}'");
  return kernel;
}

}  // namespace lathe::kernel
