#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "ir/support/dtype.h"
#include "ir/support/error.h"
#include "ir/support/syntax/commas.h"
#include "tools/commands/commands.h"
#include "tools/commands/compile/emit_options.h"
#include "tools/effective_options.h"
#include "tools/options/arguments.h"
#include "tools/options/memory_budget.h"
#include "tools/options/number_option.h"
#include "tools/pretrained/graph_part.h"

namespace lathe::tools {

namespace {

constexpr std::string_view library_kinds[] = {"archive", "header", "object", "source-list", "helpers"};
constexpr std::string_view cuda_kinds[] = {"cuda", "prelude", "ptx", "cubin"};

bool is_library_kind(std::string_view kind) {
  return std::ranges::find(library_kinds, kind) != std::end(library_kinds);
}

/// Returns what is wrong with a value of --emit, or an empty text.
std::string emit_fault(const std::string& list) {
  const std::set<std::string> kinds = emitted_kinds(list);
  for (const std::string& kind : kinds)
    if (!is_library_kind(kind) && std::ranges::find(cuda_kinds, kind) == std::end(cuda_kinds))
      return fmt::format("there is no output format '{}': give {} for a C library, or {} for a GPU", kind,
                         fmt::join(library_kinds, ", "), fmt::join(cuda_kinds, ", "));
  if (kinds.size() > 1 && !std::ranges::all_of(kinds, is_library_kind))
    return fmt::format("{}: formats for a GPU are written one at a time", list);
  return "";
}

/// Throws [usage] for an option that has no effect on the kind of files, or on these graphs.
void require_effects(const CLI::App& command, const EmitOptions& options, bool is_library) {
  const std::set<std::string> of_libraries{"--prefix",        "--max",     "--dim",
                                           "--part",          "--dtype",   "--evaluation",
                                           "--embed-weights", "--weights", "--packed-weights"};
  if (!is_library) refuse_options(command, of_libraries, "CUDA code", "leave it out, or give --emit=archive,header");
  if (std::ranges::none_of(options.files, is_model_folder))
    refuse_options(command, {"--part"}, fmt::format("{}, which has one graph", options.files[0]),
                   "leave it out, or give a model directory");
}

/// Returns --target with the prefix of GPUs: sm_90a becomes cuda:sm_90a.
std::string full_targets(const std::string& list) {
  std::string targets;
  for (const std::string_view name : syntax::at_commas(list))
    targets += fmt::format("{}{}{}", targets.empty() ? "" : ",", name.starts_with("sm_") ? "cuda:" : "", name);
  return targets;
}

void run(EmitOptions options, const CLI::App& command) {
  options.target = full_targets(options.target);
  if (options.emit.empty())
    options.emit = options.target.starts_with("cuda") && options.prefix.empty() ? "cuda" : "archive,header";
  const bool is_library = is_library_kind(*emitted_kinds(options.emit).begin());
  require_effects(command, options, is_library);
  if (options.target.empty()) options.target = is_library ? "x86-64-v3" : "cuda:sm_90a";
  if (options.output.empty()) options.output = is_library ? "." : "-";
  is_library ? write_library_files(options) : write_cuda_files(options);
}

void add_library_options(CLI::App& command, EmitOptions& options) {
  command.add_option("--prefix", options.prefix, "Library: start of the names of its functions and types");
  command
      .add_option("--max", options.most,
                  "Library: largest sizes of dims that stay unknown until a call, such as B=8,T=1024")
      ->delimiter(',');
  command.add_option("--dim", options.dims, "Library: sizes of dims that become numbers, such as B=8")
      ->delimiter(',');
  command
      .add_option("--part", options.part,
                  "Library of a model directory: graphs of `lathe model`, such as logits, or prompt,step for both")
      ->capture_default_str();
  command.add_option("--dtype", options.dtype, "Library: compute dtype of the graph's f32 values")
      ->capture_default_str()
      ->check(CLI::IsMember({"f32", "f64", "bf16", "f16"}));
  command.add_flag("--evaluation", options.evaluation, "Library: without dropout");
  command.add_flag("--embed-weights", options.embed_weights,
                   "Library: the values of parameters become part of it; by default, the caller has them");
  command.add_option_function<std::string>(
      "--packed-weights",
      [&options](const std::string& text) { options.packed_bytes = text == "off" ? 0 : parse_bytes(text); },
      "Library for CPUs: maximum memory for copies of weights, such as 512MiB, which the caller packs once for all "
      "runs "
      "with a function `pack` (default: off)");
  command.add_option("--weights", options.weights,
                     "Library: .safetensors files with the values to embed; default: those of a model directory");
}

}  // namespace

std::set<std::string> emitted_kinds(const std::string& list) {
  const std::vector<std::string_view> kinds = syntax::at_commas(list);
  return {kinds.begin(), kinds.end()};
}

void add_compile(CLI::App& app) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("compile", "Compile graphs to a C library, or to code for a GPU");
  command->add_option("FILE", options->files, "IR text files, or a model directory")->required();
  add_source_options(*command, options->source);
  command->add_option("-o,--output", options->output,
                      "Folder for the files of a library (default: the current one) and for cubin; otherwise a file "
                      "(default: standard output)");
  command->add_option(
      "--target", options->target,
      "Library: CPU levels or GPU architectures, lowest first (default: x86-64-v3), such as x86-64-v3,x86-64-v4 or "
      "sm_80,sm_90a; calls use the last one that the machine supports. CUDA code: its architecture (default: "
      "cuda:sm_90a)");
  command
      ->add_option(
          "--emit", options->emit,
          "Output formats. Library: archive (static library), header (C99), object, source-list (kernels with "
          "their source lines), helpers (headers with a thread pool, memory, files and GPUs for C and C++). GPU: "
          "cuda (CUDA C++), prelude (lathe.cuh, which that code includes), ptx or "
          "cubin. Default: archive,header; with a GPU as the target and without --prefix: cuda")
      ->check(emit_fault);
  between(command->add_option("--threads", options->threads, "Number of compiler threads"), 1, 64)
      ->capture_default_str();
  add_library_options(*command, *options);
  add_lower_options(*command, options->lower);
  command->footer(
      "Examples:\n"
      "  lathe compile step.lathe --prefix gpt2_step --max B=8,T=1024 --target x86-64-v3,x86-64-v4 -o out\n"
      "  lathe compile MiniLM --part pooled --prefix minilm --max B=32,T=512 --embed-weights -o out\n"
      "  lathe compile step.lathe --prefix gpt2_step --max B=8,T=1024 --target sm_80,sm_90a -o out\n"
      "  lathe compile attention.lathe --emit=cuda -o attention.cu\n"
      "  lathe compile attention.lathe --target=cuda:sm_80 --emit=ptx -o attention.ptx\n"
      "  lathe compile attention.lathe --target=cuda:sm_90a --emit=cubin -o kernels");
  command->callback([options, command] { run(*options, *command); });
}

}  // namespace lathe::tools
