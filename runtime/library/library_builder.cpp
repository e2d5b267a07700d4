#include "runtime/library/library_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "ir/support/error.h"
#include "ir/support/share_jobs.h"
#include "runtime/library/library_messages.h"
#include "runtime/library/library_weights.h"
#include "runtime/library/program_code.h"

namespace lathe {

using codegen::LibraryEntry;
using codegen::LibraryInitial;
using codegen::LibraryTensor;

namespace {

std::int64_t element_alignment(const LibrarySlot& slot) {
  return static_cast<std::int64_t>(size_in_bytes(slot.dtype)) / (is_complex(slot.dtype) ? 2 : 1);
}

class LibraryBuilder {
 public:
  LibraryBuilder(const LibraryPlan& plan, const LibraryMachine& machine, std::vector<codegen::LibraryLevel> levels)
      : plan_(plan), machine_(machine) {
    for (const LibraryFunction& function : plan.functions)
      if (const Program& program = function.programs[0]; !program.collectives.empty())
        throw UserError(
            fmt::format("a library runs in one process, and @{} exchanges values with others", program.name),
            "one_process", "give a graph of one process");
    messages_.add_all({"no error", machine.no_level_message(plan.prefix),
                       fmt::format("the library is not initialised: call {}_init first", plan.prefix),
                       "a pointer to the library, to a call or to dims is null", "the pointer to the states is null",
                       "the pointer to the workspace is null"});
    messages_.add_all(machine.own_messages());
    code_.prefix = plan.prefix;
    code_.init = plan.init;
    code_.describe = plan.description;
    code_.file_header = plan.file_header;
    code_.levels = std::move(levels);
    for (const auto& [name, value] : plan.embedded) weights_.add_parameter(name, value);
    for (const LibraryDimension& dim : plan.dims)
      code_.dims.push_back(
          {dim.name, dim.most, messages_.add(fmt::format("the dim {} must be from 0 to {}", dim.c_name, dim.most))});
    for (std::size_t i = 0; i < plan.states.size(); ++i) {
      const LibrarySlot& state = plan.states[i];
      code_.states.push_back(
          tensor(state, LibraryTensor::Role::state, static_cast<int>(i), element_alignment(state)));
      code_.initials.push_back(initial(state, plan.initials[i]));
    }
    for (const LibraryFunction& function : plan.functions) code_.entries.push_back(entry(function));
    add_programs();
    code_.messages = messages_.all();
    code_.weights = weights_.bytes();
  }

  codegen::Library take() { return std::move(code_); }

 private:
  /// Returns the alignment of a tensor in calls.
  std::int64_t in_calls(const LibrarySlot& slot) const {
    return std::max(machine_.tensor_alignment(element_alignment(slot)), slot.alignment);
  }

  LibraryTensor tensor(const LibrarySlot& slot, LibraryTensor::Role role, int number, std::int64_t alignment) {
    const char* const roles[] = {"input", "state", "output"};
    const std::string what = fmt::format("the {} {}: {}{}", roles[static_cast<int>(role)], slot.c_name,
                                         name(slot.dtype), slot.shape.to_string());
    return {
        .role = role,
        .slot = number,
        .name = slot.c_name,
        .elements = library_size(slot.shape.numel(), plan_),
        .dtype = slot.dtype,
        .alignment = alignment,
        .is_written = role == LibraryTensor::Role::output || (role == LibraryTensor::Role::state && slot.is_written),
        .error = messages_.add_all({fmt::format("{} is null", what),
                                    fmt::format("{} must be aligned to {} bytes", what, alignment),
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
      result.tensors.push_back(
          tensor(function.inputs[i], LibraryTensor::Role::input, static_cast<int>(i), in_calls(function.inputs[i])));
    for (std::size_t i = 0; i < function.outputs.size(); ++i)
      result.tensors.push_back(tensor(function.outputs[i], LibraryTensor::Role::output, static_cast<int>(i),
                                      in_calls(function.outputs[i])));
    for (std::size_t i = 0; i < function.states.size(); ++i) {
      if (function.states[i] < 0) continue;
      const LibrarySlot& slot = plan_.states[function.states[i]];
      LibraryTensor state = in_calls(slot) == element_alignment(slot)
                                ? code_.states[function.states[i]]
                                : tensor(slot, LibraryTensor::Role::state, function.states[i], in_calls(slot));
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
    result.workspace_error =
        messages_.add_all({fmt::format("the workspace is too small: ask {}_workspace_bytes{}", plan_.prefix,
                                       machine_.has_workers() ? " with the number of workers" : ""),
                           "the workspace overlaps with a tensor"});
    return result;
  }

  void add_programs() {
    for (std::size_t target = 0; target < plan_.targets.size(); ++target) {
      LibraryKernels kernels;
      for (std::size_t f = 0; f < plan_.functions.size(); ++f)
        code_.entries[f].programs.push_back(
            program_code(plan_, plan_.functions[f], target, {machine_, weights_, messages_, kernels}));
      code_.levels[target].kernels = kernels.all();
      machine_.describe_kernels(kernels, target, code_.levels[target]);
    }
  }

  const LibraryPlan& plan_;
  const LibraryMachine& machine_;
  codegen::Library code_;
  LibraryMessages messages_;
  LibraryWeights weights_;
};

}  // namespace

std::string level_symbol(std::string target) {
  for (char& c : target)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return target;
}

void require_used_targets(const std::vector<std::string>& targets,
                          const std::function<bool(std::size_t later, std::size_t earlier)>& covers) {
  for (std::size_t later = 1; later < targets.size(); ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (covers(later, earlier))
        throw UserError(fmt::format("no call would use {}: each machine that supports it also supports {}, which is "
                                    "later in the list",
                                    targets[earlier], targets[later]),
                        "library_target", "give the lowest target first");
}

codegen::Library library_code(const LibraryPlan& plan, const LibraryMachine& machine,
                              std::vector<codegen::LibraryLevel> levels) {
  return LibraryBuilder(plan, machine, std::move(levels)).take();
}

EmittedLibrary library_objects(const codegen::Library& code, int threads) {
  const std::size_t levels = code.levels.size();
  std::vector<codegen::LibraryObject> objects(levels + 1 + (code.weights.empty() ? 0 : 1));
  share_jobs(objects.size(), threads, [&](const NextJob& next) {
    while (const auto i = next())
      objects[*i] = *i < levels    ? codegen::level_object(code, *i)
                    : *i == levels ? codegen::interface_object(code)
                                   : codegen::weights_object(code);
  });
  EmittedLibrary result;
  result.archive = {fmt::format("lib{}.a", code.prefix), codegen::archive_of(objects)};
  for (codegen::LibraryObject& object : objects)
    result.objects.push_back({std::move(object.name), std::move(object.bytes)});
  return result;
}

}  // namespace lathe
