#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "models/text/template/partial/text_pieces.h"
#include "models/text/template/template.h"

namespace lathe::jinja {

class Runtime;
struct For;
struct LoopRecord;
struct Program;

/// Renders a template for a list, and then for many parts of this list. The first render records the inputs of each
/// iteration of the loops over the list (LoopRecord). Later renders run everything outside of these loops. In a loop,
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
