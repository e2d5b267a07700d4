#include "models/text/template/partial/partial_renders.h"

#include <algorithm>

#include "models/text/template/interpreter.h"
#include "models/text/template/library/functions.h"
#include "models/text/template/partial/loop_recorder.h"

namespace lathe::jinja {

namespace {

std::size_t common_start_of(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}
std::size_t common_end_of(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin()).first - a.rbegin());
}

/// Returns the length of the common prefix or suffix.
template <bool from_start>
std::size_t common(const TextPieces& a, const TextPieces& b, std::uint64_t& compared) {
  const auto &left = a.pieces(), &right = b.pieces();
  std::size_t i = 0, j = 0, same = 0;
  std::string_view x, y;
  const auto refill = [](std::string_view& part, const std::vector<std::string_view>& pieces, std::size_t& next) {
    while (part.empty() && next < pieces.size()) {
      part = from_start ? pieces[next] : pieces[pieces.size() - 1 - next];
      ++next;
    }
    return !part.empty();
  };
  while (refill(x, left, i) && refill(y, right, j)) {
    const std::size_t size = std::min(x.size(), y.size());
    const std::string_view p = from_start ? x.substr(0, size) : x.substr(x.size() - size),
                           q = from_start ? y.substr(0, size) : y.substr(y.size() - size);
    std::size_t count = size;
    if (p.data() != q.data()) {
      count = from_start ? common_start_of(p, q) : common_end_of(p, q);
      compared += count;
    }
    same += count;
    if (count < size) break;
    x = from_start ? x.substr(size) : x.substr(0, x.size() - size);
    y = from_start ? y.substr(size) : y.substr(0, y.size() - size);
  }
  return same;
}

}  // namespace

void TextPieces::append(std::string text) {
  owned_.push_back(std::make_unique<const std::string>(std::move(text)));
  share(*owned_.back());
}

void TextPieces::share(std::string_view text) {
  if (text.empty()) return;
  pieces_.push_back(text);
  size_ += text.size();
}

TextPieces TextPieces::from(std::size_t at) const {
  TextPieces rest;
  for (const std::string_view piece : pieces_) {
    if (at < piece.size()) rest.share(piece.substr(at));
    at -= std::min(at, piece.size());
  }
  return rest;
}

std::size_t common_start(const TextPieces& a, const TextPieces& b, std::uint64_t& compared) {
  return common<true>(a, b, compared);
}

std::size_t common_end(const TextPieces& a, const TextPieces& b, std::uint64_t& compared) {
  return common<false>(a, b, compared);
}

namespace {

/// Returns whether the variable has the same value at the start of each iteration.
bool is_outer(const For& loop, const std::string& name) {
  return std::none_of(loop.scope.begin(), loop.scope.end(),
                      [&](const Load& load) { return load.name == name && load.from != Load::From::inputs; });
}

/// Returns whether an expression is a number without overflow in every iteration, if the first iteration evaluates
/// it.
bool is_small_number(const For& loop, const Expr& expr) {
  if (const auto* literal = std::get_if<Literal>(&expr.node))
    return literal->value.is(Kind::integer) && std::abs(literal->value.integer()) < (1 << 30);
  if (const auto* sum = std::get_if<BinaryExpr>(&expr.node))
    return expr.height < 16 && (sum->op == BinaryOp::add || sum->op == BinaryOp::subtract) &&
           is_small_number(loop, *sum->left) && is_small_number(loop, *sum->right);
  if (const auto* index = std::get_if<Attribute>(&expr.node)) {
    const auto* name = std::get_if<Name>(&index->object->node);
    return name && name->name == "loop" && (index->name == "index" || index->name == "index0");
  }
  const auto* use = std::get_if<FilterUse>(&expr.node);
  const auto* name = use && use->subject ? std::get_if<Name>(&use->subject->node) : nullptr;
  return name && use->name == "length" && use->arguments.positional.empty() && use->arguments.named.empty() &&
         !use->arguments.rest && !use->arguments.named_rest && is_outer(loop, name->name);
}

/// Returns A of `A and B and ..` if it is an attribute of a variable that the loop does not assign.
const Attribute* guard_of(const For& loop, const Expr& test) {
  if (const auto* logical = std::get_if<Logical>(&test.node))
    return logical->is_and ? guard_of(loop, *logical->left) : nullptr;
  const auto* attribute = std::get_if<Attribute>(&test.node);
  const auto* name = attribute ? std::get_if<Name>(&attribute->object->node) : nullptr;
  return name && is_outer(loop, name->name) ? attribute : nullptr;
}

}  // namespace

std::optional<IdleLoop> IdleLoop::find(const For& loop) {
  IdleLoop idle;
  if (!loop.target.items.empty()) return std::nullopt;
  for (const Statement& statement : loop.body) {
    const auto* set = std::get_if<Set>(&statement.node);
    const auto* branches = std::get_if<If>(&statement.node);
    if (set && set->target.items.empty() && set->target.attribute.empty() && is_small_number(loop, *set->value))
      continue;
    const bool one = branches && branches->branches.size() == 1 && branches->otherwise.empty();
    const Attribute* guard = one ? guard_of(loop, *branches->branches.front().first) : nullptr;
    if (!guard) return std::nullopt;
    idle.guards_.push_back(guard);
  }
  return idle;
}

bool IdleLoop::idles(const Interpreter& interpreter) const {
  return std::all_of(guards_.begin(), guards_.end(), [&](const Attribute* guard) {
    const Slot slot = std::get<Name>(guard->object->node).slot;
    const Value& owner = interpreter.frame()->slots[slot.index];
    const auto* space =
        slot.hops == 0 && owner.is(Kind::object) ? dynamic_cast<const Namespace*>(owner.object()) : nullptr;
    const Value* value = space ? space->find(guard->name) : nullptr;
    return value && value->is(Kind::boolean) && !value->boolean();
  });
}

Replay::Replay(Interpreter& interpreter, const std::map<const For*, LoopRecord>& records, const ListPart& part,
               std::string_view recorded)
    : interpreter_(interpreter),
      records_(records),
      part_(part),
      recorded_(recorded),
      loops_(top_loops(interpreter.program())) {}

TextPieces Replay::text() {
  text_.append(interpreter_.text().substr(taken_));
  return std::move(text_);
}

void Replay::enter(const For& node, Loop& loop, const Value& iterable) {
  loop_ = &loop;
  iterable_ = iterable;
  record_ = nullptr;
  iteration_ = 0;
  rejoins_ = false;
  idle_since_.reset();
  idle_ = iterable.is_sequence() ? IdleLoop::find(node) : std::nullopt;
  const auto record = records_.find(&node);
  if (record == records_.end() || !iterable.view()) return;
  record_ = &record->second;
  variables_ = read_variables(interpreter_);
  const std::size_t common = record_->common_iterations(variables_, *iterable.view(), part_, rejoins_);
  rejoins_ = rejoins_ && record_->given_up == never && part_.replaced != ListView::none;
  skip_recorded(common);
}

void Replay::skip_recorded(std::size_t end) {
  if (end == iteration_) return;
  record_->write_attributes(variables_, iteration_, end);
  interpreter_.runtime().budget().spend_skipped(record_->work_at[end] - record_->work_at[iteration_]);
  loop_->skip(interpreter_.runtime(), end - iteration_, iterable_.item(end - 1));
  const std::size_t begin = record_->text_at[iteration_], size = record_->text_at[end] - begin;
  text_.append(interpreter_.text().substr(taken_));
  taken_ = interpreter_.text().size();
  text_.share(recorded_.substr(begin, size));
  interpreter_.skip_output(size);
  iteration_ = end;
}

void Replay::before_iteration() {
  if (idle_ && !idle_since_ && idle_->idles(interpreter_)) idle_since_ = interpreter_.runtime().budget().spent();
}

void Replay::after_iteration() {
  ++iteration_;
  if (idle_since_) return skip_idle();
  if (!rejoins_ || iteration_ <= record_->last_use(part_.replaced)) return;
  if (record_->has_attributes(variables_, iteration_)) skip_recorded(record_->iterations());
}

void Replay::skip_idle() {
  const std::size_t size = iterable_.size(), rest = size - iteration_;
  const std::uint64_t work = interpreter_.runtime().budget().spent() - *idle_since_;
  idle_.reset();
  idle_since_.reset();
  if (rest == 0) return;
  interpreter_.runtime().budget().spend_skipped(work * rest);
  loop_->skip(interpreter_.runtime(), rest, iterable_.item(size - 1));
  iteration_ = size;
}

PartialRenders::PartialRenders(const Template& program, Inputs inputs, const RenderOptions& options)
    : program_(program.program()),
      inputs_(std::move(inputs)),
      options_(options),
      list_(std::make_shared<const std::vector<Value>>(std::move(inputs_.list))) {
  for (const Value& item : *list_) depth_ = std::max(depth_, item.depth());
  const Value given = variables({list_->size(), inputs_.flag});
  check_text(given);
  recorded_ = std::make_unique<Runtime>(options_.limits.work, options_.limits.depth, options_.now);
  const WorkMeter meter(*recorded_, work_);
  Interpreter interpreter(program_, given, options_, *recorded_);
  Recording recording(interpreter, records_);
  interpreter.set_watcher(&recording);
  whole_ = interpreter.run();
}

PartialRenders::~PartialRenders() = default;

Value PartialRenders::variables(const Part& part) const {
  ListView view{.source = list_, .total = part.count, .count = part.count};
  int depth = depth_;
  if (part.replaced) {
    view.replaced = part.replaced->first;
    view.replacement = part.replaced->second;
    depth = std::max(depth, view.replacement.depth());
  }
  DictBuilder all(inputs_.variables.dict());
  all.set(inputs_.list_name, Value::list(std::move(view), depth + 1));
  all.set(inputs_.flag_name, part.flag);
  return std::move(all).finish();
}

TextPieces PartialRenders::render(const Part& part) {
  const Value given = variables(part);
  const ListPart list{.count = part.count,
                      .replaced = part.replaced ? part.replaced->first : ListView::none,
                      .flag = part.flag != inputs_.flag ? inputs_.flag_name : std::string()};
  Runtime runtime(options_.limits.work, options_.limits.depth, options_.now);
  const WorkMeter meter(runtime, work_);
  Interpreter interpreter(program_, given, options_, runtime);
  Replay replay(interpreter, records_, list, whole_.text);
  interpreter.set_watcher(&replay);
  interpreter.execute();
  return replay.text();
}

}  // namespace lathe::jinja
