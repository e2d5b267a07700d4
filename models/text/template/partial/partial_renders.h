#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/template/partial/loop_recorder.h"
#include "models/text/template/syntax/ast.h"
#include "models/text/template/template.h"

namespace lathe::jinja {

class Interpreter;
class Runtime;
struct For;
struct LoopRecord;
struct Program;

/// A text stored as a list of pieces, which texts may share.
class TextPieces {
 public:
  TextPieces() = default;
  /// `shared` must outlive this object.
  explicit TextPieces(std::string_view shared) { share(shared); }

  void append(std::string text);
  /// Appends a text that must outlive this object.
  void share(std::string_view text);

  std::size_t size() const { return size_; }
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  /// Returns the text from byte `at` on, which shares pieces with this one.
  TextPieces from(std::size_t at) const;

 private:
  std::vector<std::string_view> pieces_;
  std::vector<std::unique_ptr<const std::string>> owned_;
  std::size_t size_ = 0;
};

/// Returns the length of the common prefix. Pieces in the same memory take constant time; adds the length of all
/// others to `compared`.
std::size_t common_start(const TextPieces& a, const TextPieces& b, std::uint64_t& compared);
/// Returns the same for the common suffix.
std::size_t common_end(const TextPieces& a, const TextPieces& b, std::uint64_t& compared);

/// A loop whose iterations have no effect while some attributes of namespaces are False. Its body consists of
/// {% set %} of sums of numbers, lengths and the index, and of {% if NAMESPACE.ATTRIBUTE and ..%} without else.
class IdleLoop {
 public:
  static std::optional<IdleLoop> find(const For& loop);
  /// Returns whether the attributes are False now. The loop's frame must be the current one.
  bool idles(const Interpreter& interpreter) const;

 private:
  std::vector<const Attribute*> guards_;
};

/// Skips iterations of recorded loops whose results match the record, and iterations of idle loops.
class Replay final : public LoopWatcher {
 public:
  /// `recorded` is the output of the recorded render. All references must outlive this object.
  Replay(Interpreter& interpreter, const std::map<const For*, LoopRecord>& records, const ListPart& part,
         std::string_view recorded);

  /// Returns the output after the interpreter has run. Call it once.
  TextPieces text();

  bool watches(const For& loop) const override { return loops_.contains(&loop); }
  void enter(const For& node, Loop& loop, const Value& iterable) override;
  void before_iteration() override;
  void after_iteration() override;
  void breaks() override {}
  void leave() override { loop_ = nullptr; }

 private:
  /// Skips iterations from iteration_ up to `end`.
  void skip_recorded(std::size_t end);
  /// Skips the rest of a loop after its first idle iteration, and spends the work of that iteration for each.
  void skip_idle();

  Interpreter& interpreter_;
  const std::map<const For*, LoopRecord>& records_;
  const ListPart& part_;
  std::string_view recorded_;
  std::set<const For*> loops_;
  TextPieces text_;
  std::size_t taken_ = 0;  ///< bytes of the interpreter's text that are in text_

  // State of the current loop:
  Loop* loop_ = nullptr;
  Value iterable_;
  const LoopRecord* record_ = nullptr;
  Variables variables_;
  std::size_t iteration_ = 0;
  bool rejoins_ = false;  ///< iterations after the last changed one may match the record
  std::optional<IdleLoop> idle_;
  std::optional<std::uint64_t> idle_since_;  ///< work spent before an iteration that idles
};

/// Renders a template for a list, and then for many parts of the list. The first render records the inputs of each
/// iteration of the loops over the list (LoopRecord). Later renders run everything outside of the loops. In a loop,
/// they skip the iterations before the first changed input, and the iterations after the last one if the variables
/// match the record again. The output is the same as without skipping.
class PartialRenders {
 public:
  struct Inputs {
    Value variables;  ///< without the two below
    std::string list_name;
    std::vector<Value> list;
    std::string flag_name;
    bool flag = false;
  };
  /// A prefix of the list in which one item may be replaced.
  struct Part {
    std::size_t count;
    bool flag;
    std::optional<std::pair<std::size_t, Value>> replaced = std::nullopt;
  };

  /// Renders for the whole list. Throws as Template::render() does. `program` outlives this.
  PartialRenders(const Template& program, Inputs inputs, const RenderOptions& options);
  ~PartialRenders();
  PartialRenders(const PartialRenders&) = delete;
  PartialRenders& operator=(const PartialRenders&) = delete;

  const Rendered& whole() const { return whole_; }
  /// Returns the output for the part, which shares memory with whole(). Throws TemplateError. A replacement must be
  /// UTF-8.
  TextPieces render(const Part& part);
  /// Returns the work of all renders so far, in the units of Budget.
  std::uint64_t work() const { return work_; }

 private:
  Value variables(const Part& part) const;

  const Program& program_;
  Inputs inputs_;
  RenderOptions options_;
  std::shared_ptr<const std::vector<Value>> list_;
  int depth_ = 0;
  std::unique_ptr<Runtime> recorded_;  ///< owns the objects in the records
  std::map<const For*, LoopRecord> records_;
  Rendered whole_;
  std::uint64_t work_ = 0;
};

}  // namespace lathe::jinja
