#include "models/text/template/partial/partial_renders.h"

#include <algorithm>

#include "models/text/template/partial/recording.h"
#include "models/text/template/partial/replay.h"

namespace lathe::jinja {

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
