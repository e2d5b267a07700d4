#include "passes/program/text/print_program.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "ir/kernel/printer.h"
#include "ir/support/error.h"
#include "ir/tensor/text/position_labels.h"

namespace lathe {

using syntax::name_or_quoted;
using syntax::quoted;

namespace {

/// Returns a label for each buffer: its name, with a number if several have the same one.
std::vector<std::string> buffer_labels(const std::vector<ProgramBuffer>& buffers) {
  std::map<std::string_view, int> count, used;
  std::set<std::string> taken;
  for (const ProgramBuffer& buffer : buffers)
    if (++count[buffer.name] == 1) taken.insert(buffer.name);
  std::vector<std::string> labels;
  for (const ProgramBuffer& buffer : buffers) {
    std::string label = buffer.name;
    if (count[buffer.name] > 1) do
        label = fmt::format("{} #{}", buffer.name, ++used[buffer.name]);
      while (!taken.insert(label).second);
    labels.push_back(std::move(label));
  }
  return labels;
}

std::string location(const Location& loc) { return loc == Location() ? "" : "  " + ir::print_location(loc); }

class ProgramPrinter {
 public:
  explicit ProgramPrinter(const Program& program) : program_(program), labels_(buffer_labels(program.buffers)) {}

  std::string run() {
    text_ = fmt::format("program {}, {} region{}\n", syntax::sigiled('@', program_.name), program_.regions,
                        program_.regions == 1 ? "" : "s");
    if (program_.collectives.empty()) text_ += "// no collectives: nothing comes from other processes\n";
    for (std::size_t e = 0; e < program_.collectives.size(); ++e) collective(program_.collectives[e], e);
    for (std::size_t l = 0; l < program_.loops.size(); ++l) loop(program_.loops[l], l);
    text_ += "\n";
    for (std::size_t l = 0; l < program_.launches.size(); ++l) {
      region(program_.launches[l].info);
      text_ += fmt::format("launch {}: ", l);
      launch(program_.launches[l], "  ");
    }
    for (std::size_t j = 0; j < program_.joined.size(); ++j) {
      const JoinedLaunches& joined = program_.joined[j];
      text_ += fmt::format("joined {}: launches {}..{} by ", j, joined.first, joined.end - 1);
      launch(joined.launch, "  ");
    }
    text_ += "\n";
    for (const auto& [kind, slots] : {std::pair{"input", &program_.inputs}, std::pair{"state", &program_.states},
                                      std::pair{"output", &program_.outputs}})
      for (const Program::Slot& each : *slots) slot(each.is_parameter ? "parameter" : kind, each);
    for (const ir::DimCheck& check : program_.checks) text_ += ir::print_check(check) + "\n";
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) buffer(program_.buffers[b], labels_[b]);
    for (const RecomputedKind& kind : program_.recomputed)
      text_ += fmt::format("recomputed {} of {}, {} bytes together\n", kind.values, quoted(kind.what),
                           kind.bytes_together);
    for (std::size_t i = 0; i < program_.kernels.size(); ++i)
      text_ += fmt::format("\n// kernel {}\n", i) + kernel::print(program_.kernels[i]);
    return std::move(text_);
  }

 private:
  std::string label(int buffer) const { return name_or_quoted(labels_[buffer]); }

  static std::string op(const LaunchOp& op) {
    return fmt::format("{} {}{}", op.value.valid() ? fmt::format("%{}", op.value.index) : "-", op.op_name(),
                       op.name.empty() ? "" : " " + quoted(op.name));
  }

  /// Prints the region of a launch, unless the launch before it has the same one.
  void region(const LaunchInfo& info) {
    const auto same = [](const LaunchOp& a, const LaunchOp& b) {
      return a.value == b.value && a.op == b.op && a.name == b.name && a.loc == b.loc;
    };
    if (info.region == region_.region && info.kind == region_.kind && std::ranges::equal(info.ops, region_.ops, same))
      return;
    region_ = info;
    text_ += fmt::format("region {}{}\n", info.region, info.kind ? fmt::format(" {}", name(*info.kind)) : "");
    for (const LaunchOp& each : info.ops) text_ += fmt::format("  {}{}\n", op(each), location(each.loc));
  }

  void launch(const Launch& launch, std::string_view indent) {
    std::vector<std::string> buffers, dims;
    for (const int buffer : launch.buffers) buffers.push_back(label(buffer));
    for (const Dim& dim : launch.dims) dims.push_back(dim.to_string());
    text_ += fmt::format("kernel {} {}({}){}{}\n{}", launch.kernel,
                         syntax::sigiled('@', program_.kernels[launch.kernel].name), fmt::join(buffers, ", "),
                         dims.empty() ? "" : " for ", fmt::join(dims, ", "), indent);
    text_ += fmt::format("as {}", quoted(words(launch.info.role)));
    if (launch.info.multiplier != Multiplier::none) text_ += " by " + quoted(words(launch.info.multiplier));
    text_ += ", work " + launch.work.to_string();
    if (launch.flops != Dim(0)) text_ += ", flops " + launch.flops.to_string();
    if (launch.bytes != Dim(0)) text_ += ", bytes " + launch.bytes.to_string();
    if (const auto& condition = launch.condition)
      text_ += fmt::format(", if {} {} {}", condition->size.to_string(), condition->is_below ? "below" : "from",
                           condition->limit);
    if (!launch.partial.empty()) text_ += fmt::format(", partial [{}]", fmt::join(launch.partial, ", "));
    for (const RowsRead& read : launch.rows_read)
      text_ += fmt::format(", reads {} from {} count {} rows {} every {}", read.parameter, read.first.to_string(),
                           read.count.to_string(), read.rows.to_string(), read.stride.to_string());
    if (launch.part_of >= 0) text_ += fmt::format(", part of %{}", launch.part_of);
    const bool at_op = !launch.info.ops.empty() && launch.info.ops.back().loc == launch.loc;
    if (!at_op) text_ += location(launch.loc);
    text_ += "\n";
    for (const MissedPath& missed : launch.info.missed)
      text_ += missed.path == Multiplier::none
                   ? fmt::format("{}not in one kernel {}\n", indent, quoted(missed.why))
                   : fmt::format("{}not by {} {}\n", indent, quoted(words(missed.path)), quoted(missed.why));
    for (const std::string& check : launch.checks) text_ += fmt::format("{}message {}\n", indent, quoted(check));
    if (!launch.tuning) return;
    std::vector<std::string> names;
    for (const std::string& name : launch.tuning->names) names.push_back(quoted(name));
    text_ += fmt::format("{}candidate {} of [{}] for {}\n", indent, launch.candidate, fmt::join(names, ", "),
                         quoted(launch.tuning->problem));
  }

  /// Each collective overlaps with launches, or runs before a launch or after all of them.
  void collective(const Collective& collective, std::size_t number) {
    text_ += fmt::format("collective {}: {} along {}={}", number, collective.parts[0].op.op_name(),
                         name_or_quoted(collective.axis), collective.ranks);
    if (collective.offset != 0) text_ += fmt::format(" by {}", collective.offset);
    const bool overlaps = collective.start < collective.done;
    const bool is_last = !overlaps && collective.start == static_cast<int>(program_.launches.size());
    text_ += overlaps  ? fmt::format(", during launches {}..{}\n", collective.start, collective.done - 1)
             : is_last ? ", after the launches\n"
                       : fmt::format(", before launch {}\n", collective.start);
    for (const Collective::Part& each : collective.parts) part(each);
  }

  void loop(const ProgramLoop& loop, std::size_t number) {
    text_ += fmt::format("loop {}: {} launches {}..{}, {} times{}\n", number, quoted(loop.name), loop.first,
                         loop.end - 1, loop.trips.to_string(), location(loop.loc));
  }

  void part(const Collective::Part& part) {
    const ProgramBuffer& from = program_.buffers[part.from];
    text_ += fmt::format("  {} : {}[{}] from {} to {}", op(part.op), name(from.dtype), part.elements.to_string(),
                         label(part.from), label(part.to));
    if (part.received >= 0) text_ += ", received " + label(part.received);
    if (part.folded >= 0) text_ += ", folded " + label(part.folded);
    if (part.window != 0) text_ += fmt::format(", window {}", part.window);
    text_ += location(part.loc) + "\n";
    if (!part.fold) return;
    text_ += fmt::format("    fold in region {}: ", part.fold->info.region);
    launch(*part.fold, "      ");
  }

  void slot(std::string_view kind, const Program::Slot& slot) {
    text_ += fmt::format("{} {}: {}{} in {}{}\n", kind, name_or_quoted(slot.name), name(slot.dtype),
                         slot.shape.to_string(), label(slot.buffer), slot.is_updated ? ", updated" : "");
  }

  void buffer(const ProgramBuffer& buffer, const std::string& label) {
    text_ += fmt::format("buffer {}: {} {}[{}]", name_or_quoted(label), name(buffer.kind), name(buffer.dtype),
                         buffer.elements.to_string());
    if (label != buffer.name) text_ += " named " + quoted(buffer.name);
    if (const auto& slice = buffer.slice)
      text_ += fmt::format(" of {} by loop {}, stride {}{}", this->label(slice->of), slice->loop,
                           slice->stride.to_string(), slice->reverse ? ", reversed" : "");
    if (buffer.has_room) text_ += " with room";
    if (buffer.kind == ProgramBuffer::Kind::constant) text_ += " = " + ir::print_attribute(buffer.data);
    text_ += location(buffer.loc) + "\n";
  }

  const Program& program_;
  const std::vector<std::string> labels_;  // by buffer
  LaunchInfo region_;                      // of the last launch
  std::string text_;
};

}  // namespace

std::string print_program(const Program& program) { return ProgramPrinter(program).run(); }

std::string_view name(ProgramBuffer::Kind kind) {
  switch (kind) {
    case ProgramBuffer::Kind::input: return "input";
    case ProgramBuffer::Kind::state: return "state";
    case ProgramBuffer::Kind::output: return "output";
    case ProgramBuffer::Kind::constant: return "constant";
    case ProgramBuffer::Kind::temporary: return "temporary";
    case ProgramBuffer::Kind::kept: return "kept";
    case ProgramBuffer::Kind::scratch: return "scratch";
    case ProgramBuffer::Kind::slice: return "slice";
  }
  throw InternalError("a kind of buffer out of range");
}

}  // namespace lathe
