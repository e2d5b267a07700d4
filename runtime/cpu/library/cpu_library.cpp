#include "runtime/cpu/library/cpu_library.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "codegen/llvm/library/cpu_check.h"
#include "codegen/llvm/library/library_code.h"
#include "ir/support/error.h"
#include "ir/support/share_jobs.h"
#include "runtime/cpu/library/program_code.h"
#include "runtime/cpu/task_sizes.h"

namespace lathe {

using codegen::LibraryEntry;
using codegen::LibraryError;
using codegen::LibraryInitial;
using codegen::LibraryObject;
using codegen::LibraryTensor;

namespace {

std::string symbol_part(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

class CpuLibrary {
 public:
  explicit CpuLibrary(const LibraryPlan& plan) : plan_(plan) {
    add_fixed_messages();
    set_plain_members();
    place_weights();
    for (const LibraryDimension& dim : plan.dims)
      code_.dims.push_back(
          {dim.name, dim.most, messages_.add(fmt::format("the dim {} must be from 0 to {}", dim.c_name, dim.most))});
    for (std::size_t i = 0; i < plan.states.size(); ++i) {
      code_.states.push_back(tensor(plan.states[i], LibraryTensor::Role::state, static_cast<int>(i)));
      code_.initials.push_back(initial(plan.states[i], plan.initials[i]));
    }
    for (const std::string& name : plan.targets)
      code_.levels.push_back({symbol_part(name), codegen::testable(codegen::TargetCpu::named(name)), {}});
    for (const LibraryFunction& function : plan.functions) code_.entries.push_back(entry(function));
    add_programs();
    code_.messages = messages_.all();
  }

  const codegen::Library& code() const { return code_; }

 private:
  void add_fixed_messages() {
    const std::string& p = plan_.prefix;
    messages_.add_all({"no error", fmt::format("this CPU supports none of the levels that {} was compiled for", p),
                       fmt::format("the library is not initialised: call {}_init first", p),
                       "a pointer to the library, to a call or to dims is null", "the pointer to the states is null",
                       "the pointer to the workspace is null",
                       "workers need a function parallel_for and a count of 1 or more"});
    LATHE_ASSERT(messages_.all().size() == static_cast<std::size_t>(LibraryError::count));
  }

  void set_plain_members() {
    const TaskSizes sizes;
    code_.prefix = plan_.prefix;
    code_.init = plan_.init;
    code_.describe = plan_.description;
    code_.file_header = plan_.file_header;
    code_.tasks = {.byte_work = sizes.byte_work,
                   .least_chunk_work = sizes.least_chunk_work,
                   .heavy_work = sizes.heavy_work,
                   .light_chunks = sizes.light_chunks,
                   .heavy_chunks = sizes.heavy_chunks,
                   .together_work = sizes.together_work};
  }

  void place_weights() {
    constexpr std::size_t alignment = 64;
    for (const auto& [name, value] : plan_.embedded) {
      code_.weights.resize((code_.weights.size() + alignment - 1) / alignment * alignment);
      weight_at_[name] = static_cast<std::int64_t>(code_.weights.size());
      code_.weights.append(reinterpret_cast<const char*>(value.data()), value.bytes());
    }
  }

  LibraryTensor tensor(const LibrarySlot& slot, LibraryTensor::Role role, int number) {
    const char* const roles[] = {"input", "state", "output"};
    const std::string what = fmt::format("the {} {}: {}{}", roles[static_cast<int>(role)], slot.c_name,
                                         name(slot.dtype), slot.shape.to_string());
    const std::size_t bytes = size_in_bytes(slot.dtype) / (is_complex(slot.dtype) ? 2 : 1);
    return {
        .role = role,
        .slot = number,
        .name = slot.c_name,
        .elements = library_size(slot.shape.numel(), plan_),
        .dtype = slot.dtype,
        .is_written = role == LibraryTensor::Role::output || (role == LibraryTensor::Role::state && slot.is_written),
        .error = messages_.add_all({fmt::format("{} is null", what),
                                    fmt::format("{} must be aligned to {} bytes", what, bytes),
                                    fmt::format("{} overlaps with other memory of the call", what)})};
  }

  LibraryInitial initial(const LibrarySlot& slot, const Init& init) const {
    const auto bytes_of = [](const HostTensor& value) {
      return std::string(reinterpret_cast<const char*>(value.data()), value.bytes());
    };
    LibraryInitial result{.a = init.a, .b = init.b, .stream = random_stream(slot.name)};
    if (slot.name == "rng" && slot.dtype == i64 && slot.shape.numel().is(2)) {
      result.kind = LibraryInitial::Kind::random_state;
    } else if (init.kind == Init::Kind::automatic && slot.shape.rank() >= 2) {  // see resolved_init()
      result.kind = LibraryInitial::Kind::normal;
      result.b = 1;
      result.fan_in = library_size(slot.shape[slot.shape.rank() - 1], plan_);
    } else if (init.kind == Init::Kind::normal || init.kind == Init::Kind::uniform) {
      result.kind = init.kind == Init::Kind::normal ? LibraryInitial::Kind::normal : LibraryInitial::Kind::uniform;
    } else if (init.kind == Init::Kind::values) {
      HostTensor value(slot.dtype, slot.shape.evaluate({}));
      if (std::cmp_not_equal(init.list.size(), value.numel()))
        throw UserError(
            fmt::format("{} starts from {} values, but has {} elements", slot.name, init.list.size(), value.numel()),
            "init_values", "give one value for each element");
      for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, init.list[i]);
      result.kind = LibraryInitial::Kind::values;
      result.bytes = bytes_of(value);
    } else {
      HostTensor value(slot.dtype, {});
      value.set(0, init.a);
      result.kind = LibraryInitial::Kind::constant;
      result.bytes = bytes_of(value);
    }
    return result;
  }

  LibraryEntry entry(const LibraryFunction& function) {
    LibraryEntry result{.name = function.suffix(),
                        .inputs = static_cast<int>(function.inputs.size()),
                        .outputs = static_cast<int>(function.outputs.size())};
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
      result.tensors.push_back(tensor(function.inputs[i], LibraryTensor::Role::input, static_cast<int>(i)));
    for (std::size_t i = 0; i < function.outputs.size(); ++i)
      result.tensors.push_back(tensor(function.outputs[i], LibraryTensor::Role::output, static_cast<int>(i)));
    for (std::size_t i = 0; i < function.states.size(); ++i) {
      if (function.states[i] < 0) continue;
      LibraryTensor state = code_.states[function.states[i]];
      state.is_written = function.programs[0].states[i].is_updated;
      result.tensors.push_back(std::move(state));
    }
    for (const ir::DimCheck& check : function.checks)
      result.checks.push_back(
          {library_size(check.left, plan_), library_size(check.right, plan_),
           check.relation == ir::DimCheck::Relation::equal,
           messages_.add(fmt::format("{}: {}: {}", check.loc.to_string(), check.op, check.message))});
    for (const ProgramLoop& loop : function.programs[0].loops)
      result.checks.push_back({library_size(0, plan_), library_size(loop.trips, plan_), false,
                               messages_.add(fmt::format("{}: a loop: {} runs {} times, which is negative",
                                                         loop.loc.to_string(), loop.name, loop.trips.to_string()))});
    result.workspace_error = messages_.add_all(
        {fmt::format("the workspace is too small: ask {}_workspace_bytes with the number of workers", plan_.prefix),
         "the workspace overlaps with a tensor"});
    return result;
  }

  void add_programs() {
    for (std::size_t target = 0; target < plan_.targets.size(); ++target) {
      std::map<std::string, int> kernel_of;
      for (std::size_t f = 0; f < plan_.functions.size(); ++f)
        code_.entries[f].programs.push_back(program_code(plan_, plan_.functions[f], target, weight_at_, messages_,
                                                         code_.levels[target].kernels, kernel_of));
    }
  }

  const LibraryPlan& plan_;
  codegen::Library code_;
  LibraryMessages messages_;
  std::map<std::string, std::int64_t> weight_at_;
};

}  // namespace

EmittedLibrary emit_cpu_library(const LibraryPlan& plan) {
  const CpuLibrary library(plan);
  const codegen::Library& code = library.code();
  const bool has_weights = !code.weights.empty();
  const std::size_t levels = code.levels.size();
  std::vector<LibraryObject> objects(levels + 1 + (has_weights ? 1 : 0));
  share_jobs(objects.size(), plan.threads, [&](const NextJob& next) {
    while (const auto i = next())
      objects[*i] = *i < levels    ? codegen::level_object(code, *i)
                    : *i == levels ? codegen::interface_object(code)
                                   : codegen::weights_object(code);
  });
  EmittedLibrary result;
  result.archive = {fmt::format("lib{}.a", plan.prefix), codegen::archive_of(objects)};
  for (LibraryObject& object : objects) result.objects.push_back({std::move(object.name), std::move(object.bytes)});
  return result;
}

std::string cpu_driver_text(const LibraryPlan& plan) { return codegen::driver_text(CpuLibrary(plan).code(), 0); }

}  // namespace lathe
