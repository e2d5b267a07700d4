#include "models/finetune/imported/tensor_rows.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/op/op.h"
#include "models/text/dataset/epoch_order.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"
#include "runtime/files/sha256.h"
#include "runtime/files/tensors/tensor_file.h"

namespace lathe {

namespace {

[[noreturn]] void fail(const std::string& text, const std::string& advice) {
  throw UserError(text, "finetune_data", advice);
}

std::vector<std::string> input_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.arguments())
    if (graph[id].op->name.value == "input") names.push_back(graph[id].name);
  return names;
}

/// Returns the tensor in the dtype of an input.
HostTensor converted(HostTensor tensor, const ir::Node& input, const std::string& source) {
  const DType from = tensor.dtype(), to = input.type.dtype;
  if (from == to) return tensor;
  if ((is_float(from) && is_float(to)) || (is_integer(from) && is_integer(to))) return tensor.cast(to);
  fail(fmt::format("{}: {} is {}, but the input is {}", source, quote(input.name), name(from), name(to)),
       fmt::format("store it as {}", name(to)));
}

void check_shape(const HostTensor& tensor, const ir::Node& input, std::int64_t batch, const std::string& source) {
  const Shape& shape = input.type.shape;
  if (shape.rank() == 0 || shape.rank() != static_cast<int>(tensor.shape().size()))
    fail(fmt::format("{}: {} is {}, but the input is {}", source, quote(input.name), shape_to_string(tensor.shape()),
                     shape.to_string()),
         "the first dim of each tensor counts the examples, and that of each input is the batch");
  if (const auto fixed = shape[0].value(); fixed && *fixed != batch)
    fail(fmt::format("the input {} has batches of exactly {} examples, not {}", quote(input.name), *fixed, batch),
         "set the batch size to that number, or export the model with a dynamic first dim");
  for (int d = 1; d < shape.rank(); ++d)
    if (const auto size = shape[d].value(); size && *size != tensor.shape()[static_cast<std::size_t>(d)])
      fail(fmt::format("{}: {} is {}, but the input is {}", source, quote(input.name),
                       shape_to_string(tensor.shape()), shape.to_string()),
           fmt::format("dim {} must have the size {}", d, *size));
}

}  // namespace

TensorRows TensorRows::read(const std::filesystem::path& file) {
  const TensorFile content = TensorFile::open(file);
  Tensors tensors;
  for (const std::string& name : content.names()) tensors.emplace(name, content.mapped(name));
  return {std::move(tensors), quote_path(file)};
}

TensorRows::TensorRows(Tensors tensors, std::string source)
    : tensors_(std::move(tensors)), source_(std::move(source)) {
  if (tensors_.empty()) fail(fmt::format("{} has no tensors", source_), "store one tensor per input of the graph");
  const std::string* first = nullptr;
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.shape().empty())
      fail(fmt::format("{}: {} is a single number", source_, quote(name)),
           "the first dim of each tensor counts the examples");
    if (first && tensor.shape()[0] != count_)
      fail(fmt::format("{}: {} has {} examples, {} has {}", source_, quote(*first), count_, quote(name),
                       tensor.shape()[0]),
           "the first dim of each tensor counts the examples");
    count_ = tensor.shape()[0];
    first = &name;
  }
  if (count_ == 0)
    fail(fmt::format("{} has no examples", source_), "the first dim of each tensor counts the examples");
  if (count_ > std::int64_t{UINT32_MAX})
    fail(fmt::format("{} has {} examples, more than 2^32", source_, count_), "divide it into several files");
}

std::int64_t TensorRows::add_empty(const ir::Graph& graph, std::string_view prefix) {
  std::int64_t added = 0;
  for (const std::string& name : input_names(graph)) {
    const ir::TensorType& type = graph[graph.find_argument(name)].type;
    if (!name.starts_with(prefix) || tensors_.contains(name) || type.rank() == 0) continue;
    std::vector<std::int64_t> sizes{count_};
    for (int d = 1; d < type.rank(); ++d) sizes.push_back(type.shape[d].value().value_or(0));
    if (std::ranges::count(sizes, 0) == 0) continue;
    tensors_.emplace(name, HostTensor(type.dtype, std::move(sizes)));
    ++added;
  }
  return added;
}

void TensorRows::fit(const ir::Graph& graph, std::int64_t batch) {
  const std::vector<std::string> inputs = input_names(graph);
  for (const auto& [name, tensor] : tensors_)
    if (std::ranges::count(inputs, name) == 0)
      fail(fmt::format("{}: {} is no input of the graph", source_, quote(name)),
           fmt::format("the inputs are {}", fmt::join(inputs, ", ")));
  for (const std::string& name : inputs) {
    const auto at = tensors_.find(name);
    const ir::Node& input = graph[graph.find_argument(name)];
    if (at == tensors_.end())
      fail(fmt::format("{} has no tensor for the input {}", source_, quote(name)),
           fmt::format("store it as {}{}, where the first dim counts the examples", lathe::name(input.type.dtype),
                       input.type.shape.to_string()));
    check_shape(at->second, input, batch, source_);
    at->second = converted(std::move(at->second), input, source_);
  }
}

DimBindings TensorRows::sizes(const ir::Graph& graph, std::int64_t batch) const {
  std::map<std::string, ir::ArgumentShape> arguments;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& argument = graph[id];
    ir::ArgumentShape& given = arguments[argument.name];
    given.dtype = argument.type.dtype;
    if (const auto at = tensors_.find(argument.name); at != tensors_.end()) {
      given.sizes = at->second.shape();
      given.sizes[0] = batch;
    } else {
      for (const Dim& dim : argument.type.shape) given.sizes.push_back(dim.evaluate({}));
    }
  }
  return ir::bind_dims(graph, arguments);
}

void TensorRows::gather(std::span<const std::uint32_t> rows, Tensors& batch) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  for (const auto& [name, tensor] : tensors_) {
    HostTensor& to = batch.try_emplace(name).first->second;
    std::vector<std::int64_t> shape = tensor.shape();
    shape[0] = count;
    if (to.dtype() != tensor.dtype() || to.shape() != shape) to = HostTensor(tensor.dtype(), std::move(shape));
    const std::size_t bytes = tensor.bytes() / static_cast<std::size_t>(count_);
    for (std::size_t i = 0; i < rows.size() && bytes > 0; ++i)
      std::memcpy(to.data() + i * bytes, tensor.data() + rows[i] * bytes, bytes);
  }
}

TensorRows TensorRows::part(std::span<const std::uint32_t> rows) const {
  Tensors tensors;
  gather(rows, tensors);
  return {std::move(tensors), source_};
}

std::pair<TensorRows, TensorRows> TensorRows::split_off(double share, std::uint64_t seed) const {
  if (count_ < 2)
    throw UserError(fmt::format("{} has one example, of which no share can be used for validation", source_),
                    "finetune_valid", "give more examples, or leave the validation out");
  const auto apart =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(share * static_cast<double>(count_)), 1, count_ - 1);
  const std::vector<std::uint32_t> order = shuffled(count_, seed, UINT64_MAX);
  const std::span<const std::uint32_t> all(order);
  const auto first = static_cast<std::size_t>(apart);
  return {part(all.first(first)), part(all.subspan(first))};
}

std::string TensorRows::hash() const {
  Sha256 hash;
  for (const auto& [name, tensor] : tensors_) {
    hash.update(fmt::format("{} {}{}\n", name, lathe::name(tensor.dtype()), shape_to_string(tensor.shape())));
    hash.update(std::span(tensor.data(), tensor.bytes()));
  }
  return to_hex(hash.finish());
}

}  // namespace lathe
