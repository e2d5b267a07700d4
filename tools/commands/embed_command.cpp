#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "models/pretrained/encoders/embedder.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/options/adapter_options.h"
#include "tools/options/number_option.h"
#include "tools/options/target_option.h"
#include "tools/pretrained/ignored_keys.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct EmbedOptions {
  std::filesystem::path folder, adapter;
  std::vector<std::string> texts, files;
  std::string output = "-", dtype = "f32", target = "host";
  std::int64_t batch = 32;
  std::optional<std::string> prompt, prompt_name;
  int threads = 0;
  bool similarities = false;
};

/// Adds all lines of a text, including empty ones, so that row i of the vectors belongs to line i.
void add_lines(const std::string& text, std::vector<std::string>& lines) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
}

std::vector<std::string> texts_of(const EmbedOptions& options) {
  std::vector<std::string> texts = options.texts;
  for (const std::string& file : options.files) add_lines(read_text(file), texts);
  if (options.texts.empty() && options.files.empty()) add_lines(read_text("-"), texts);
  if (texts.empty())
    throw UserError("there is no text to embed", "embed_texts", "give texts, or a file with one text per line");
  return texts;
}

/// Returns a JSON object per text, one per line: {"text": .., "vector": [..]}.
std::string lines_of(const std::vector<std::string>& texts, const HostTensor& vectors) {
  std::string lines;
  const std::int64_t width = vectors.shape()[1];
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string numbers;
    for (std::int64_t d = 0; d < width; ++d) {
      const double value = vectors.get(static_cast<std::int64_t>(i) * width + d);
      numbers += vectors.dtype() == f64 ? fmt::format("{}{}", d ? ", " : "", value)
                                        : fmt::format("{}{}", d ? ", " : "", static_cast<float>(value));
    }
    const std::string text = nlohmann::json(texts[i]).dump();
    lines += fmt::format("{{\"text\": {}, \"vector\": [{}]}}\n", text, numbers);
  }
  return lines;
}

std::string table_of(const std::vector<std::string>& texts, const HostTensor& similarities) {
  const auto n = static_cast<std::int64_t>(texts.size());
  std::string table;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) table += fmt::format("{:>7.4f} ", similarities.get(i * n + j));
    table += fmt::format(" {}\n", visible(texts[i]));
  }
  return table;
}

void embed(const EmbedOptions& options) {
  const std::vector<std::string> texts = texts_of(options);
  DiskCache cache(cache_folder());
  pretrained::Embedder embedder = pretrained::Embedder::load(options.folder,
                                                             {.dtype = *parse_dtype(options.dtype),
                                                              .batch = options.batch,
                                                              .threads = options.threads,
                                                              .cache = cache.enabled() ? &cache : nullptr,
                                                              .target = compile_options(options.target).target},
                                                             options.adapter);
  note_ignored_keys(options.folder, options.adapter);
  const pretrained::TextOptions& model = embedder.model().texts();
  const HostTensor vectors =
      embedder.embed(texts, options.prompt_name ? model.prompt(*options.prompt_name) : options.prompt);
  const bool to_file = options.output != "-";
  if (to_file && options.output.ends_with(".safetensors"))
    write_safetensors(options.output, {{"vectors", vectors}});
  else if (to_file || !options.similarities)
    write_text(options.output, lines_of(texts, vectors));
  if (options.similarities) print_text(table_of(texts, pretrained::similarities(vectors, model.similarity)));
}

}  // namespace

void add_embed(CLI::App& app) {
  auto o = std::make_shared<EmbedOptions>();
  CLI::App* command =
      app.add_subcommand("embed", "Compute embeddings of texts with a sentence-transformers directory");
  command
      ->add_option("DIR", o->folder,
                   "Directory of an encoder with its tokenizer, and modules.json if it has one; or of an adapter")
      ->required();
  command->add_option("TEXT", o->texts,
                      "Texts to embed (default: the lines of standard input, if no file is given either)");
  command->add_option("-f,--file", o->files, "File with one text per line (repeatable); - is standard input")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option(
          "-o,--output", o->output,
          "Output file: .safetensors with \"vectors\" [texts, width], otherwise JSON lines; - is standard output")
      ->capture_default_str();
  add_adapter_option(*command, o->adapter);
  CLI::Option* prompt = command->add_option(
      "--prompt", o->prompt, "Text to put in front of each text (default: the model's default_prompt_name)");
  command
      ->add_option("--prompt-name", o->prompt_name,
                   "Name of a prompt in the model's config_sentence_transformers.json (default: see --prompt)")
      ->excludes(prompt);
  command->add_flag("--similarities", o->similarities,
                    "Print a table of the similarities of all texts, by the model's similarity_fn_name or cosine");
  command->add_option("--dtype", o->dtype, "Compute dtype; weights keep their stored dtype")
      ->check(CLI::IsMember({"f64", "f32", "bf16"}))
      ->capture_default_str();
  between(command->add_option("--batch", o->batch, "Texts per batch"), 1, most_size)->capture_default_str();
  add_target_option(*command, o->target);
  add_threads_option(*command, o->threads);
  command->footer(
      "Examples:\n"
      "  lathe embed all-MiniLM-L6-v2 \"a cat\" \"a kitten\" \"a train\" --similarities\n"
      "  lathe embed all-MiniLM-L6-v2 -f lines.txt -o vectors.safetensors\n"
      "  lathe embed multilingual-e5-small -f questions.txt --prompt \"query: \" -o questions.safetensors");
  command->callback([o] { embed(*o); });
}

}  // namespace lathe::tools
