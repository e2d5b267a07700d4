#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "ir/support/error.h"
#include "models/generation/generator.h"
#include "runtime/cache/disk_cache.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/inputs/input_lines.h"
#include "tools/options/adapter_options.h"
#include "tools/options/number_option.h"
#include "tools/options/precision_option.h"
#include "tools/options/target_option.h"
#include "tools/pretrained/ignored_keys.h"
#include "tools/stop_signals.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

struct GenerateOptions {
  std::filesystem::path folder, adapter;
  std::string file, system, dtype = "f32", cache_dtype, weights = "stored";
  std::vector<std::string> prompts, stop, bad_words;
  std::string early_stopping;
  bool chat = false, greedy = false, quiet = false, ignore_end = false;
  std::optional<std::int64_t> max_new_tokens, min_new_tokens, top_k, no_repeat_ngram, beams, results;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty, length_penalty;
  std::vector<std::int64_t> suppress;
  std::uint64_t seed = 0;
  std::int64_t chunk = 512;
  int threads = 0;
};

template <class To, class From>
void set(To& to, const std::optional<From>& from) {
  if (from) to = *from;
}

void set_sampling(const GenerateOptions& o, Sampling& sampling) {
  const bool narrows = o.top_k || o.top_p || o.min_p || o.typical_p;
  if (narrows && sampling.greedy()) sampling.temperature = 1;
  set(sampling.temperature, o.temperature);
  set(sampling.top_k, o.top_k);
  set(sampling.top_p, o.top_p);
  set(sampling.min_p, o.min_p);
  set(sampling.typical_p, o.typical_p);
  set(sampling.repetition_penalty, o.repetition_penalty);
  if (o.greedy) sampling.temperature = 0;
  if (narrows && sampling.greedy())
    throw UserError(
        "at --temperature 0 the most likely token is taken, so --top-k, --top-p, --min-p and --typical-p "
        "have no effect",
        "usage", "give a temperature above 0, or leave them out");
}

/// Bans a word both at the start of a text and after another word, which have different tokens.
void add_bad_word(const Tokenizer& tokenizer, const std::string& word, TokenRules& rules) {
  for (const std::string& text : {word, " " + word}) {
    const Encoding encoding = tokenizer.encode(text, {.special_tokens = false, .offsets = false});
    std::vector<std::int64_t> tokens(encoding.ids.begin(), encoding.ids.end());
    if (!tokens.empty()) rules.bad_words.push_back(std::move(tokens));
  }
}

void set_beams(const GenerateOptions& o, BeamSettings& beams) {
  using Early = BeamOptions::EarlyStopping;
  set(beams.width, o.beams);
  // The file's number of results belongs to its own number of beams.
  if (o.beams) beams.results = 1;
  set(beams.results, o.results);
  set(beams.length_penalty, o.length_penalty);
  if (!o.early_stopping.empty())
    beams.early_stopping = o.early_stopping == "never" ? Early::never
                           : o.early_stopping == "yes" ? Early::yes
                                                       : Early::no;
  if (beams.width == 1 && (o.length_penalty || !o.early_stopping.empty()))
    throw UserError(fmt::format("{} has no effect without beam search",
                                o.length_penalty ? "--length-penalty" : "--early-stopping"),
                    "usage", "give --beams NUMBER, or leave it out");
  if (beams.results > beams.width)
    throw UserError(fmt::format("--results {} is more than --beams {}", beams.results, beams.width), "usage",
                    "give at most as many results as beams");
}

/// Returns the options of the directory, overridden by those of the command line.
GenerationOptions generation_options(const GenerateOptions& o, const Tokenizer& tokenizer, GenerationOptions base) {
  set_sampling(o, base.sampling);
  set_beams(o, base.beams);
  set(base.max_new_tokens, o.max_new_tokens);
  TokenRules& rules = base.rules;
  set(rules.no_repeat_ngram_size, o.no_repeat_ngram);
  if (o.min_new_tokens) rules.min_length = 0;
  set(rules.min_new_tokens, o.min_new_tokens);
  rules.suppress_tokens.insert(rules.suppress_tokens.end(), o.suppress.begin(), o.suppress.end());
  for (const std::string& word : o.bad_words) add_bad_word(tokenizer, word, rules);
  if (o.ignore_end) base.stop_tokens.clear();
  if (!o.stop.empty()) base.stop_strings = o.stop;
  base.seed = o.seed;
  return base;
}

std::string speed(const Generation& g) {
  std::size_t prompt = 0;
  for (std::size_t i = 0; i < g.size(); ++i) prompt += g.prompt(i).size();
  const auto steps = static_cast<std::int64_t>(g.new_tokens()) - static_cast<std::int64_t>(g.size());
  std::string text = fmt::format("first token after {:.2f} s ({} prompt tokens)", g.prompt_seconds(), prompt);
  if (steps > 0 && g.step_seconds() > 0)
    text += fmt::format(", then {:.1f} tokens/s", static_cast<double>(steps) / g.step_seconds());
  return text;
}

class Command {
 public:
  explicit Command(const GenerateOptions& options)
      : o_(options),
        cache_(cache_folder()),
        generator_(Generator::load(o_.folder,
                                   {.dtype = *parse_dtype(o_.dtype),
                                    .cache_dtype = parse_dtype(o_.cache_dtype),
                                    .chunk = o_.chunk,
                                    .threads = o_.threads,
                                    .cache = &cache_},
                                   {.weights = weight_format(o_.weights)}, o_.adapter)),
        how_(generation_options(o_, generator_.tokenizer(), generator_.defaults())) {
    note_ignored_keys(o_.folder, o_.adapter);
  }

  void run() {
    // Read before signals are handled, so that a signal can interrupt waiting for input.
    if (!o_.file.empty()) o_.prompts.push_back(read_text(o_.file));
    if (!o_.chat && o_.prompts.empty()) o_.prompts.push_back(read_text("-"));
    const StopSignals signals;
    if (o_.chat)
      chat();
    else if (o_.beams || how_.beams.width > 1)
      beams();
    else if (o_.prompts.size() > 1)
      several();
    else
      one();
    if (StopSignals::received() != 0) throw Stopped(StopSignals::received());
  }

 private:
  /// Prints text as it is generated.
  std::string stream(Generation generation) {
    while (StopSignals::received() == 0 && generation.step()) print_text(generation.piece());
    print_text("\n");
    report(generation);
    return generation.text();
  }

  void report(const Generation& generation) {
    if (!o_.quiet) print_error(speed(generation) + "\n");
  }

  /// Prints the most likely continuations of each prompt, found by beam search.
  void beams() {
    for (const std::string& prompt : o_.prompts) {
      if (StopSignals::received() != 0) return;
      for (const Generator::BeamText& found : generator_.beams(prompt, how_)) print("{}\n", found.text);
    }
  }

  void one() { stream(generator_.start(o_.prompts, how_)); }

  void several() {
    Generation generation = generator_.start(o_.prompts, how_);
    while (StopSignals::received() == 0 && generation.step()) {
    }
    for (std::size_t i = 0; i < generation.size(); ++i)
      print("--- {} of {}: {} ---\n{}\n", i + 1, generation.size(), o_.prompts[i], generation.text(i));
    report(generation);
  }

  void answer(std::vector<ChatMessage>& messages, std::string text) {
    messages.push_back({"user", std::move(text)});
    std::vector<std::vector<Generation::TokenId>> prompts;
    prompts.push_back(generator_.chat_tokens(messages));
    messages.push_back({"assistant", stream(generator_.start(std::move(prompts), how_))});
  }

  /// With prompts, these are the user's messages of a conversation. Without, each line of standard input is a turn.
  void chat() {
    std::vector<ChatMessage> messages;
    if (!o_.system.empty()) messages.push_back({"system", o_.system});
    for (std::string& prompt : o_.prompts) answer(messages, prompt);
    if (!o_.prompts.empty()) return;
    const bool asks = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
    InputLines lines;
    std::string line;
    while (StopSignals::received() == 0) {
      if (asks) print_error("> ");
      if (!lines.next(line)) break;
      if (!line.empty()) answer(messages, line);
    }
  }

  GenerateOptions o_;
  DiskCache cache_;
  Generator generator_;
  GenerationOptions how_;
};

void add_length_options(CLI::App& command, GenerateOptions& o) {
  between(command.add_option("-n,--max-new-tokens", o.max_new_tokens,
                             "Maximum new tokens per text (default: the model's, or 256)"),
          1, most_steps);
  between(command.add_option("--min-new-tokens", o.min_new_tokens,
                             "Minimum new tokens per text (default: the model's, or 0)"),
          0, most_steps);
  command
      .add_option("--stop", o.stop,
                  "String before which a text ends (repeatable) (default: the model's stop_strings)")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--ignore-end", o.ignore_end, "Continue after end-of-text tokens");
}

void add_sampling_options(CLI::App& command, GenerateOptions& o) {
  CLI::Option* greedy = command.add_flag("--greedy", o.greedy,
                                         "Take the most likely token; the default unless the model sets do_sample");
  not_negative(command.add_option("--temperature", o.temperature,
                                  "Divisor of the logits; 0 is greedy (default: the model's, or 1 when sampling)"))
      ->excludes(greedy);
  at_least(command.add_option("--top-k", o.top_k,
                              "Sample from the k most likely tokens; 0 uses all (default: the model's, or 0)"),
           0)
      ->excludes(greedy);
  positive(
      command.add_option(
          "--top-p", o.top_p,
          "Sample from the most likely tokens that together reach this probability (default: the model's, or 1)"),
      1)
      ->excludes(greedy);
  real_between(
      command.add_option(
          "--min-p", o.min_p,
          "Sample from tokens with at least this fraction of the largest probability (default: the model's, or 0)"),
      0, 1)
      ->excludes(greedy);
  positive(
      command.add_option(
          "--typical-p", o.typical_p,
          "Sample from the most typical tokens that together reach this probability (default: the model's, or 1)"),
      1)
      ->excludes(greedy);
  seed(command.add_option("--seed", o.seed, "Seed of sampling; the same seed gives the same text"))
      ->capture_default_str();
}

void add_rule_options(CLI::App& command, GenerateOptions& o) {
  positive(command.add_option(
      "--repetition-penalty", o.repetition_penalty,
      "Penalty for tokens that the text already contains; 1 is none (default: the model's, or 1)"));
  at_least(command.add_option("--no-repeat-ngram", o.no_repeat_ngram,
                              "Size of n-grams that may occur only once; 0 is no limit (default: the model's, or 0)"),
           0);
  command
      .add_option("--bad-word", o.bad_words, "Text that is never generated, in addition to the model's (repeatable)")
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  at_least(command
               .add_option("--suppress-tokens", o.suppress,
                           "Token ids that are never generated, such as 5,7, in addition to the model's")
               ->allow_extra_args(false)
               ->delimiter(','),
           0);
}

void add_beam_options(CLI::App& command, GenerateOptions& o) {
  CLI::Option* beams = command.add_option(
      "--beams", o.beams, "Beam search with this width, without sampling (default: the model's num_beams, or 1)");
  between(beams, 1, most_size);
  for (const char* draws : {"--temperature", "--top-k", "--top-p", "--min-p", "--typical-p"})
    beams->excludes(command.get_option(draws));
  between(
      command.add_option("--results", o.results, "Number of texts that beam search prints, best first (default: 1)"),
      1, most_size)
      ->excludes(command.get_option("--chat"));
  real_between(
      command.add_option("--length-penalty", o.length_penalty,
                         "Beams are ranked by log-probability / length^PENALTY (default: the model's, or 1)"),
      -1000, 1000);
  command
      .add_option("--early-stopping", o.early_stopping,
                  "When beam search stops after it has enough texts: yes (at once), no (if longer texts are unlikely "
                  "to be better) or never (if they cannot be better) (default: the model's, or no)")
      ->check(CLI::IsMember({"no", "yes", "never"}));
}

}  // namespace

void add_generate(CLI::App& app) {
  auto o = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "Generate text with a Hugging Face model");
  command
      ->add_option("DIR", o->folder,
                   "Directory of a model with its tokenizer (.safetensors files, or a decoder with a cache as ONNX "
                   "files), or adapter directory")
      ->required();
  add_adapter_option(*command, o->adapter);
  command->add_option("PROMPT", o->prompts, "Prompts, generated as one batch (default: standard input)");
  command->add_option("-f,--file", o->file, "File with a prompt; - is standard input");
  CLI::Option* chat = command->add_flag(
      "--chat", o->chat, "Answer with the chat template; each PROMPT, or line of standard input, is a user turn");
  command->add_option("--system", o->system, "System message of the chat")->needs(chat);
  add_length_options(*command, *o);
  add_sampling_options(*command, *o);
  add_rule_options(*command, *o);
  add_beam_options(*command, *o);
  command
      ->add_option("--dtype", o->dtype,
                   "Compute dtype; weights keep their stored dtype. bf16 is faster on CPUs that multiply bf16")
      ->check(CLI::IsMember({"f64", "f32", "bf16"}))
      ->capture_default_str();
  command
      ->add_option("--cache", o->cache_dtype,
                   "Dtype of cached keys and values (default: that of --dtype, or bf16 with --weights q8)")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "f16"}));
  add_weights_option(*command, o->weights);
  between(command->add_option("--chunk", o->chunk, "Prompt tokens that are processed at a time"), 1, most_size)
      ->capture_default_str();
  add_threads_option(*command, o->threads);
  command->add_flag("-q,--quiet", o->quiet, "Do not print speeds to standard error");
  command->footer(
      "Options default to the values in the model's generation_config.json. Prints the new text without the prompt.\n"
      "Examples:\n"
      "  lathe generate Llama-3.2-1B \"Once upon a time\" -n 100\n"
      "  lathe generate Qwen3-0.6B --chat \"What is a monad?\" --temperature 0.7 --top-p 0.9\n"
      "  lathe generate Qwen3-0.6B --chat --weights q8\n"
      "  lathe generate Qwen3-0.6B --adapter adapter --chat\n"
      "  lathe generate t5-small \"translate English to German: The house is old.\" --beams 4");
  command->callback([o] { Command(*o).run(); });
}

}  // namespace lathe::tools
