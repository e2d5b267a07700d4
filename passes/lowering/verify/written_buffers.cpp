#include "passes/lowering/verify/written_buffers.h"

namespace lathe {

WrittenBuffers::WrittenBuffers(const Program& program) : program_(program), before_(program.loops.size()) {
  for (const ProgramBuffer& buffer : program.buffers) written_.push_back(buffer.elements == Dim(0));
}

bool WrittenBuffers::has_value(int buffer) const {
  using Kind = ProgramBuffer::Kind;
  for (;; buffer = program_.buffers[buffer].slice->of) {
    const Kind kind = program_.buffers[buffer].kind;
    if (written_[buffer] || kind == Kind::input || kind == Kind::state || kind == Kind::constant) return true;
    if (kind != Kind::slice) return false;
  }
}

bool WrittenBuffers::is_all_of(const ProgramBuffer& slice) const {
  const Dim& stride = slice.slice->stride;
  return slice.elements == stride &&
         program_.buffers[slice.slice->of].elements == program_.loops[slice.slice->loop].trips * stride;
}

void WrittenBuffers::leave(int loop) {
  std::vector<int> whole;
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program_.buffers[b];
    if (!buffer.slice || buffer.slice->loop != loop || buffer.elements == Dim(0)) continue;
    if (written_[b] && is_all_of(buffer)) whole.push_back(buffer.slice->of);
    written_[b] = false;
  }
  const std::optional<std::int64_t> trips = program_.loops[loop].trips.value();
  if (!trips || *trips == 0) written_ = before_[loop];
  for (const int buffer : whole) written_[buffer] = true;
}

void WrittenBuffers::reach(int launch) {
  const auto loops = static_cast<int>(program_.loops.size());
  for (int loop = loops - 1; loop >= 0; --loop)  // inner loops first
    if (program_.loops[loop].end == launch) leave(loop);
  for (int loop = 0; loop < loops; ++loop)
    if (program_.loops[loop].first == launch) before_[loop] = written_;
}

}  // namespace lathe
