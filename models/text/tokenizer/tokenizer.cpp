#include "models/text/tokenizer/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "ir/support/error.h"
#include "models/text/tokenizer/config/tokenizer_config.h"
#include "models/text/tokenizer/decode/decode_stages.h"
#include "models/text/tokenizer/pipeline/tokenizer_pipeline.h"
#include "models/text/tokenizer/unicode/utf8.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"
#include "runtime/files/strict_json.h"
#include "runtime/files/write/atomic_file.h"
#include "runtime/files/write/folder_save.h"

namespace lathe {

namespace {

constexpr std::uint64_t largest_tokenizer = std::uint64_t{1} << 30;  // bytes

/// The last stage of a decoder. Collects the text.
class TextSink : public text::DecodeStage {
 public:
  explicit TextSink(std::string& text) : text_(text) {}
  void push(std::string_view fragment) override { text_.append(fragment); }
  void end_token() override {}
  void finish() override {}

 private:
  std::string& text_;
};

/// Pads encodings and removes lists that were not requested.
void finish(std::span<Encoding> encodings, const EncodeOptions& options) {
  if (options.padding) pad(encodings, *options.padding);
  if (options.offsets) return;
  for (Encoding& encoding : encodings) {
    encoding.offsets.clear();
    encoding.words.clear();
    for (Encoding& part : encoding.overflow) {
      part.offsets.clear();
      part.words.clear();
    }
  }
}

}  // namespace

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  text::Utf8Repair repair;
  repair.push(text, valid);
  repair.finish(valid);
  return valid;
}

struct Tokenizer::Content {
  Content(std::string json_text, const std::string& file, const nlohmann::json& tree,
          const text::TokenizerConfig& settings)
      : json(std::move(json_text)), name(file), config(settings), pipeline(text::JsonNode(tree, file)) {}
  std::string json;
  std::string name;  ///< for messages
  text::TokenizerConfig config;
  text::Pipeline pipeline;

  /// Returns the text that decoders receive for a token.
  std::optional<std::string_view> decoded_text(TokenId id) const {
    if (pipeline.added().tokens().contains(id)) return pipeline.added().decoded_text(id);
    const text::TokenTable& tokens = pipeline.model().tokens();
    return tokens.has(id) ? std::optional(tokens.text(id)) : std::nullopt;
  }
};

struct Tokenizer::Stream::Content {
  std::shared_ptr<const Tokenizer::Content> tokenizer;
  bool skips_special = true;
  std::string out;
  std::unique_ptr<text::DecodeStage> decoder;
};

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  if (!is_folder(path)) return parse(read_file(path, largest_tokenizer), path.string());
  FolderSave::require_complete(path);
  const std::filesystem::path file = path / "tokenizer.json";
  std::string json = read_file(file, largest_tokenizer);
  nlohmann::json tree = parse_strict_json(json, file.string());
  const text::TokenizerConfig config = text::read_tokenizer_config(path, tree);
  return Tokenizer(std::make_shared<const Content>(std::move(json), file.string(), tree, config));
}

Tokenizer Tokenizer::parse(std::string json, const std::string& name) {
  const nlohmann::json tree = parse_strict_json(json, name);
  return Tokenizer(std::make_shared<const Content>(std::move(json), name, tree, text::TokenizerConfig{}));
}

Tokenizer Tokenizer::for_embeddings(std::int64_t count) const {
  Tokenizer limited = *this;
  limited.embeddings_ = count;
  return limited;
}

void Tokenizer::check(std::span<const Encoding> encodings) const {
  if (end_id() <= embeddings_) return;
  for (const Encoding& encoding : encodings)
    for (const TokenId id : encoding.ids)
      if (static_cast<std::int64_t>(id) >= embeddings_)
        throw UserError(fmt::format("{}: the text has token {} ('{}'), and the model has embeddings of {} tokens",
                                    content_->name, id, token_of(id).value_or(""), embeddings_),
                        "tokenizer_range", "leave it out of the text, or take the tokenizer of the model");
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return std::move(encode_batch({&text, 1}, options).front());
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  Encoding encoding = content_->pipeline.encode(std::array{first, second}, options);
  check({&encoding, 1});
  finish({&encoding, 1}, options);
  return encoding;
}

std::vector<Encoding> Tokenizer::encode_batch(std::span<const std::string_view> texts,
                                              const EncodeOptions& options) const {
  std::vector<Encoding> encodings;
  encodings.reserve(texts.size());
  for (const std::string_view& text : texts) encodings.push_back(content_->pipeline.encode({&text, 1}, options));
  check(encodings);
  finish(encodings, options);
  return encodings;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  Stream pieces = stream(skip_special);
  std::string text;
  for (const TokenId id : ids) text += pieces.push(id);
  return text += pieces.finish();
}

Tokenizer::Stream Tokenizer::stream(bool skip_special) const {
  auto content = std::make_unique<Stream::Content>();
  content->tokenizer = content_;
  content->skips_special = skip_special;
  std::unique_ptr<text::DecodeStage> sink = std::make_unique<TextSink>(content->out);
  if (content_->config.cleans_up) sink = text::start_clean_up(std::move(sink));
  content->decoder = content_->pipeline.start_decoding(std::move(sink));
  return Stream(std::move(content));
}

Tokenizer::Stream::Stream(std::unique_ptr<Content> content) : content_(std::move(content)) {}
Tokenizer::Stream::Stream(Stream&&) noexcept = default;
Tokenizer::Stream& Tokenizer::Stream::operator=(Stream&&) noexcept = default;
Tokenizer::Stream::~Stream() = default;

std::string Tokenizer::Stream::push(TokenId id) {
  const auto text = content_->tokenizer->decoded_text(id);
  if (!text || (content_->skips_special && content_->tokenizer->pipeline.added().is_special(*text))) return {};
  content_->decoder->push(*text);
  content_->decoder->end_token();
  return std::exchange(content_->out, {});
}

std::string Tokenizer::Stream::finish() {
  content_->decoder->finish();
  return std::exchange(content_->out, {});
}

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  if (const AddedToken* added = content_->pipeline.added().find(token)) return added->id;
  return content_->pipeline.model().tokens().find(token);
}

std::optional<std::string> Tokenizer::token_of(TokenId id) const {
  const auto& added = content_->pipeline.added().tokens();
  if (const auto found = added.find(id); found != added.end()) return found->second.content;
  const text::TokenTable& tokens = content_->pipeline.model().tokens();
  return tokens.has(id) ? std::optional(std::string(tokens.text(id))) : std::nullopt;
}

bool Tokenizer::is_special(TokenId id) const {
  const auto text = token_of(id);
  return text && content_->pipeline.added().is_special(*text);
}

std::size_t Tokenizer::vocabulary_size() const {
  const text::TokenTable& tokens = content_->pipeline.model().tokens();
  const auto& added = content_->pipeline.added().tokens();
  const auto is_new = [&](const auto& entry) { return !tokens.has(entry.first); };
  return tokens.size() + static_cast<std::size_t>(std::count_if(added.begin(), added.end(), is_new));
}

TokenId Tokenizer::end_id() const {
  const auto& added = content_->pipeline.added().tokens();
  return std::max(content_->pipeline.model().tokens().end(), added.empty() ? 0 : added.rbegin()->first + 1);
}

std::vector<AddedToken> Tokenizer::added_tokens() const {
  std::vector<AddedToken> all;
  for (const auto& [id, token] : content_->pipeline.added().tokens()) all.push_back(token);
  return all;
}

const std::optional<Truncation>& Tokenizer::truncation() const { return content_->pipeline.truncation(); }
Side Tokenizer::truncation_side() const { return content_->config.truncation_side; }
const std::optional<Padding>& Tokenizer::padding() const { return content_->pipeline.padding(); }
std::vector<std::string> Tokenizer::words_of(std::string_view text) const {
  return content_->pipeline.words_of(text);
}
const std::string& Tokenizer::json() const { return content_->json; }

void Tokenizer::save(const std::filesystem::path& path) const {
  AtomicFile file(path);
  file.write(content_->json);
  file.commit();
}

}  // namespace lathe
