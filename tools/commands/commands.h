#pragma once

#include <CLI/App.hpp>

/// The subcommands of `lathe`, one file each. Each function adds its subcommand with options, help and callback to
/// the app. Callbacks throw lathe::Error on failure.
namespace lathe::tools {

void add_dump(CLI::App& app);
void add_explain(CLI::App& app);
void add_diff(CLI::App& app);
void add_opt(CLI::App& app);
void add_grad(CLI::App& app);
void add_shard(CLI::App& app);
void add_model(CLI::App& app);
void add_export(CLI::App& app);
void add_run(CLI::App& app);
void add_verify(CLI::App& app);
void add_bench(CLI::App& app);
void add_trace(CLI::App& app);
void add_train(CLI::App& app);
void add_finetune(CLI::App& app);
void add_eval(CLI::App& app);
void add_generate(CLI::App& app);
void add_merge(CLI::App& app);
void add_embed(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_chat(CLI::App& app);
void add_compile(CLI::App& app);
void add_doctor(CLI::App& app);

}  // namespace lathe::tools
