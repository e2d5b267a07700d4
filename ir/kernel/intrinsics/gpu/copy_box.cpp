#include "ir/kernel/intrinsics/gpu/copy_box.h"

#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/swizzled_tiles.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

constexpr int mapped_bytes = 16;  // offset and strides of a mapped tensor

constinit const IntrinsicRecord copy_box_record =
    intrinsic_record<CopyBox>({.name = "copy_box",
                               .args = {2, 1 + most_map_dims + 1},
                               .buffers = {1, 1},
                               .of_map = true,
                               .produced_by = ProducedBy::first_producer,
                               .shared_alignment = swizzle_alignment,
                               .parameter_alignment = mapped_bytes});

CopyBox CopyBox::of(const Instruction& in) {
  return {in.machine->buffers[0].id, in.args[0], in.machine->map, {in.args.begin() + 1, in.args.end()}};
}

Instruction CopyBox::instruction() const {
  std::vector<ValueId> args = {to_index};
  args.insert(args.end(), at.begin(), at.end());
  return intrinsic_instruction({.record = &copy_box_record, .buffers = {{to, Access::write}}, .map = map},
                               std::move(args));
}

void CopyBox::verify(const IntrinsicRules& rules) const {
  const TensorMap& boxes = rules.kernel.maps[map];
  const BufferInfo& target = rules.buffer(to);
  rules.require(target.space == Space::shared && target.dtype == rules.buffer(boxes.from).dtype, "copy_buffers",
                "a copy_box to {}, which is not shared or of another type", target.name);
  rules.require(at.size() == boxes.sizes.size(), "arity", "a copy_box by {} coordinates", at.size());
  rules.want(to_index, {i64, 1}, "the index of a copy_box");
  for (const ValueId id : at) rules.want(id, {i64, 1}, "a coordinate of a copy_box");
  const Instruction& first = rules.value(to_index);
  rules.require(first.op != Opcode::constant || first.integer % (swizzle_alignment / 2) == 0, "alignment",
                "a copy_box to {}[{}], which is no multiple of {} bytes", target.name, first.integer,
                swizzle_alignment);
  rules.require(rules.context.is_in(stage_record, Stage::producing) && rules.context.branches == 0, "copy_context",
                "a copy_box in a branch or outside the producer of a stage");
}

std::string CopyBox::text(const IntrinsicText& text) const {
  std::string result = fmt::format("copy_box {}[{}] = m{}[", text.buffer(to), text.value(to_index), map);
  for (std::size_t i = 0; i < at.size(); ++i) result += (i ? ", " : "") + text.value(at[i]);
  return result + "]";
}

CopyBox CopyBox::parse(IntrinsicReader& in) {
  CopyBox copy;
  copy.to = in.buffer(), copy.to_index = in.element();
  in.expect("=");
  copy.map = in.map();
  in.expect("[");
  in.list([&] { copy.at.push_back(in.value()); });
  in.expect("]");
  return copy;
}

namespace {

/// The source tensor of box copies.
struct MappedTensor {
  Target from;
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;
};

/// Returns the elements of a box in tile order. Throws if the offset or a stride is not a multiple of 16 bytes.
std::vector<Scalar> read_box(const MappedTensor& tensor, const std::vector<int>& box,
                             const std::vector<std::int64_t>& at, const Actor& actor) {
  tensor.from.check_alignment(mapped_bytes, tensor.offset);
  for (const std::int64_t stride : tensor.strides)
    if (stride % 8 != 0)
      tensor.from.fail(fmt::format("a map of {} by {}, no multiple of 16 bytes", tensor.from.info->name, stride),
                       "alignment");
  int rows = 1;
  for (std::size_t d = 1; d < box.size(); ++d) rows *= box[d];
  std::vector<Scalar> values(static_cast<std::size_t>(rows * swizzle_side));
  for (int row = 0; row < rows; ++row) {
    std::int64_t first = tensor.offset;
    bool inside = true;
    for (std::size_t d = 1, remainder = static_cast<std::size_t>(row); d < box.size(); ++d) {
      const auto count = static_cast<std::size_t>(box[d]);
      const std::int64_t index = at[d] + static_cast<std::int64_t>(remainder % count);
      inside = inside && index >= 0 && index < tensor.sizes[d];
      first += index * tensor.strides[d - 1];
      remainder /= count;
    }
    for (int e = 0; inside && e < swizzle_side; ++e)
      if (const std::int64_t index = at[0] + e; index >= 0 && index < tensor.sizes[0])
        values[swizzled_offset(row, e)] = tensor.from.load(first + index, actor);
  }
  return values;
}

}  // namespace

void CopyBox::interpret(const IntrinsicRun& run, ValueId, Thread& t) const {
  if (t.position[0] != consumers_of(run)) return;
  const TensorMap& boxes = run.kernel().maps[map];
  const Target target = run.target(to, t);
  const MappedTensor from{run.target(boxes.from, t), run.integer(boxes.offset, t), run.integers(boxes.sizes, t),
                          run.integers(boxes.strides, t)};
  target.check_alignment(swizzle_alignment, run.integer(to_index, t));
  const Actor actor = run.actor(t);
  t.copies.start(t.scratch[to], target, run.integer(to_index, t),
                 read_box(from, boxes.box, run.integers(at, t), actor), actor);
}

void copy_box(Builder& builder, Buffer to, Builder::Bound to_index, int map, const std::vector<Value>& at) {
  CopyBox copy{.to = to.id, .to_index = builder.bound(to_index).id, .map = map};
  for (const Value v : at) copy.at.push_back(v.id);
  builder.machine(copy.instruction());
}

namespace {
constexpr const IntrinsicRecord* box_records[] = {&copy_box_record};
}  // namespace
extern const IntrinsicFamily box_intrinsics;
constinit const IntrinsicFamily box_intrinsics{.operations = box_records};

}  // namespace lathe::kernel
