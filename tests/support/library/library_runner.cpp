#include "tests/support/library/library_runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"

namespace lathe::test {

namespace {

using Json = nlohmann::json;
using Task = void (*)(void*, std::int64_t, std::int32_t);

void in_threads(void* context, std::int64_t count, Task task, void* argument) {
  const auto threads = static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(context));
  std::atomic<std::int64_t> next = 0;
  std::vector<std::jthread> workers;
  for (std::int32_t worker = 0; worker < threads; ++worker)
    workers.emplace_back([&, worker] {
      for (std::int64_t i = next++; i < count; i = next++) task(argument, i, worker);
    });
}

/// Reads a shape such as [2*T + 1, 64].
Shape shape_of(const Json& json) {
  std::string dims;
  for (const Json& dim : json)
    dims += fmt::format("{}{}", dims.empty() ? "" : ", ",
                        dim.is_string() ? dim.get<std::string>() : std::to_string(dim.get<std::int64_t>()));
  const ir::Graph graph = ir::parse_graph(fmt::format("graph @g(input %x: f32[{}]) {{\n  output \"o\" %x\n}}", dims));
  return graph[graph.arguments()[0]].type.shape;
}

std::vector<DescribedTensor> tensors_of(const Json& json) {
  std::vector<DescribedTensor> tensors;
  for (const Json& one : json)
    tensors.push_back({one.at("name"), one.at("member"), *parse_dtype(one.at("dtype").get<std::string>()),
                       shape_of(one.at("shape"))});
  return tensors;
}

HostTensor filled(DType dtype, const std::vector<std::int64_t>& sizes) {
  HostTensor tensor(dtype, sizes);
  if (tensor.bytes() > 0) std::memset(tensor.data(), 0xff, tensor.bytes());
  return tensor;
}

}  // namespace

Workers thread_workers(std::int32_t count) {
  return {in_threads, reinterpret_cast<void*>(static_cast<std::intptr_t>(count)), count};
}

LibraryRunner::LibraryRunner(const std::vector<LibraryGraph>& graphs, const LibraryOptions& options)
    : prefix_(options.prefix), library_(emit_library(graphs, options)) {
  std::vector<std::string> objects;
  for (const LibraryFile& object : library_.objects) objects.push_back(object.bytes);
  code_ = std::make_unique<codegen::LoadedCode>(objects);
  read_description();
}

void LibraryRunner::read_description() {
  using Describe = const char* (*)();
  const Json json = Json::parse(reinterpret_cast<Describe>(address("_describe"))());
  for (const Json& dim : json.at("dims")) dims_.push_back(dim.at("name"));
  described_states_ = tensors_of(json.at("states"));
  for (const Json& function : json.at("functions"))
    functions_.push_back(
        {function.at("name"), tensors_of(function.at("inputs")), tensors_of(function.at("outputs"))});
}

void LibraryRunner::throw_error(std::int32_t error) {
  using Message = const char* (*)(std::int32_t);
  if (error != 0) throw UserError(reinterpret_cast<Message>(address("_message"))(error), "library");
}

std::vector<std::int64_t> LibraryRunner::dim_words(const DimBindings& dims) const {
  std::vector<std::int64_t> words;
  for (const std::string& name : dims_) {
    const auto size = dims.find(name);
    words.push_back(size == dims.end() ? 0 : size->second);
  }
  return words;
}

std::vector<void*> LibraryRunner::state_pointers() {
  std::vector<void*> pointers;
  for (const DescribedTensor& state : described_states_) pointers.push_back(states_.at(state.name).data());
  return pointers;
}

void LibraryRunner::init(const DimBindings& dims, std::uint64_t seed) {
  states_.clear();
  for (const DescribedTensor& state : described_states_)
    states_.emplace(state.name, filled(state.dtype, state.shape.evaluate(dims)));
  std::vector<std::int64_t> words = dim_words(dims);
  std::vector<void*> pointers = state_pointers();
  void* const function = code_->addresses({library_.init})[0];
  std::int32_t error = 0;
  // Arguments that the library does not have are left out.
  if (dims_.empty() && pointers.empty())
    error = reinterpret_cast<std::int32_t (*)(void*)>(function)(instance_);
  else if (pointers.empty())
    error = reinterpret_cast<std::int32_t (*)(void*, void*)>(function)(instance_, words.data());
  else if (dims_.empty())
    error =
        reinterpret_cast<std::int32_t (*)(void*, void*, std::uint64_t)>(function)(instance_, pointers.data(), seed);
  else
    error = reinterpret_cast<std::int32_t (*)(void*, void*, void*, std::uint64_t)>(function)(instance_, words.data(),
                                                                                             pointers.data(), seed);
  throw_error(error);
}

void LibraryRunner::set_states(const Tensors& states) {
  if (instance_[0] == 0) {
    using Init = std::int32_t (*)(void*, void*, void*, std::uint64_t);
    // Registers of arguments that the function does not have are ignored.
    throw_error(reinterpret_cast<Init>(code_->addresses({library_.init})[0])(instance_, nullptr, nullptr, 0));
  }
  for (const DescribedTensor& state : described_states_) states_.insert_or_assign(state.name, states.at(state.name));
}

Tensors LibraryRunner::run(const std::string& function, const Tensors& inputs, const DimBindings& dims, int workers) {
  const auto found = std::ranges::find(functions_, function, &DescribedFunction::name);
  LATHE_ASSERT(found != functions_.end());
  if (instance_[0] == 0) set_states({});
  std::vector<std::int64_t> call = dim_words(dims);
  const auto add = [&](const void* pointer) { call.push_back(reinterpret_cast<std::intptr_t>(pointer)); };
  for (const DescribedTensor& input : found->inputs) add(inputs.at(input.name).data());
  std::vector<void*> pointers = state_pointers();
  if (!pointers.empty()) add(pointers.data());
  Tensors outputs;
  for (const DescribedTensor& output : found->outputs)
    outputs.emplace(output.name, filled(output.dtype, output.shape.evaluate(dims)));
  for (const DescribedTensor& output : found->outputs) add(outputs.at(output.name).data());
  using WorkspaceBytes = std::int64_t (*)(void*, std::int32_t);
  const std::int64_t bytes = reinterpret_cast<WorkspaceBytes>(address("_workspace_bytes"))(instance_, workers);
  LATHE_ASSERT(bytes > 0);
  std::vector<std::uint8_t> workspace(static_cast<std::size_t>(bytes), 0xff);
  add(workspace.data());
  call.push_back(bytes);
  const Workers threads = thread_workers(workers);
  add(workers > 0 ? &threads : nullptr);
  using Run = std::int32_t (*)(void*, void*);
  void* const run = code_->addresses({function + "_run"})[0];
  throw_error(reinterpret_cast<Run>(run)(instance_, call.data()));
  return outputs;
}

}  // namespace lathe::test
