#include "models/text/tokenizer/finish/post_processor.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/files/file_io.h"

namespace lathe::text {

namespace {

constexpr std::string_view template_label = "tokenizer_template";

void set_type(Draft& draft, std::int32_t type) {
  std::fill(draft.encoding.type_ids.begin(), draft.encoding.type_ids.end(), type);
  for (Draft& part : draft.overflow) set_type(part, type);
}

/// Returns a draft of special tokens, which have no offsets.
Draft special(const std::vector<TokenId>& ids, std::int32_t type) {
  Draft draft;
  draft.encoding.ids = ids;
  draft.encoding.type_ids.assign(ids.size(), type);
  draft.encoding.offsets.resize(ids.size());
  draft.encoding.words.assign(ids.size(), -1);
  draft.encoding.special_mask.assign(ids.size(), 1);
  draft.encoding.attention_mask.assign(ids.size(), 1);
  draft.edges.resize(ids.size());
  return draft;
}

/// Excludes spaces at the ends of tokens from their offsets.
void trim(Draft& draft, bool adds_space) {
  for (std::size_t i = 0; i < draft.encoding.offsets.size() && i < draft.edges.size(); ++i) {
    TextRange& range = draft.encoding.offsets[i];
    auto [leading, trailing] = draft.edges[i];
    // A single leading space is the one that was prepended.
    if ((i == 0 || range.begin == 0) && adds_space && leading == 1) leading = 0;
    range.begin = std::min(range.begin + leading, range.end);
    if (range.end >= trailing) range.end = std::max(range.end - trailing, range.begin);
  }
  for (Draft& part : draft.overflow) trim(part, adds_space);
}

/// BertProcessing and RobertaProcessing: [CLS] A [SEP] B [SEP], or <s> A </s> </s> B </s>.
class Pairing : public PostProcessor {
 public:
  Pairing(const Fields& fields, bool is_roberta)
      : cls_(read_token(fields.get("cls"))), sep_(read_token(fields.get("sep"))), is_roberta_(is_roberta) {
    if (!is_roberta) return;
    trims_ = fields.get("trim_offsets").boolean();
    adds_space_ = fields.get("add_prefix_space").boolean();
  }

  std::size_t added(bool is_pair) const override { return is_pair ? (is_roberta_ ? 4 : 3) : 2; }
  bool trims() const override { return trims_; }

  void apply(std::vector<Draft>& drafts, bool adds_special) const override {
    for (Draft& draft : drafts) {
      if (trims_) trim(draft, adds_space_);
      if (is_roberta_) set_type(draft, 0);
    }
    if (!adds_special) return;
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      const std::int32_t type = i > 0 && !is_roberta_ ? 1 : 0;
      Draft all = special(i == 0        ? std::vector{cls_}
                          : is_roberta_ ? std::vector{sep_}
                                        : std::vector<TokenId>{},
                          type);
      append(all, drafts[i]);
      append(all, special({sep_}, type));
      drafts[i] = std::move(all);
    }
  }

 private:
  /// ["[SEP]", 102]
  static TokenId read_token(const JsonNode& place) {
    const std::vector<JsonNode> items = place.items();
    if (items.size() != 2) place.fail("is not a token and its id");
    items[0].string();
    return static_cast<TokenId>(items[1].count());
  }

  TokenId cls_, sep_;
  bool is_roberta_, trims_ = false, adds_space_ = false;
};

class ByteLevel : public PostProcessor {
 public:
  explicit ByteLevel(const Fields& fields)
      : adds_space_(fields.get("add_prefix_space").boolean()), trims_(fields.get("trim_offsets").boolean()) {
    fields.boolean_or("use_regex", true);
  }
  std::size_t added(bool) const override { return 0; }
  bool trims() const override { return trims_; }
  void apply(std::vector<Draft>& drafts, bool) const override {
    if (trims_)
      for (Draft& draft : drafts) trim(draft, adds_space_);
  }

 private:
  bool adds_space_, trims_;
};

class Template : public PostProcessor {
 public:
  explicit Template(const Fields& fields) {
    const std::map<std::string, Special> known = read_specials(fields.get("special_tokens"));
    single_ = read_pieces(fields.get("single"), known, false);
    pair_ = read_pieces(fields.get("pair"), known, true);
  }

  std::size_t added(bool is_pair) const override {
    std::size_t count = 0;
    for (const Piece& piece : is_pair ? pair_ : single_) count += piece.special.size();
    return count;
  }
  bool is_template() const override { return true; }

  void apply(std::vector<Draft>& drafts, bool adds_special) const override {
    std::vector<Draft> all;
    for (const Piece& piece : drafts.size() == 2 ? pair_ : single_) {
      if (piece.text < 0) {
        if (adds_special) all.push_back(special(piece.special, piece.type));
      } else {
        all.push_back(drafts[piece.text]);
        set_type(all.back(), piece.type);
      }
    }
    drafts = std::move(all);
  }

 private:
  using Special = std::vector<TokenId>;
  struct Piece {
    int text = -1;  ///< 0: first text, 1: second text, -1: special tokens
    Special special;
    std::int32_t type = 0;
  };

  /// {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens": ["[CLS]"]}}
  static std::map<std::string, Special> read_specials(const JsonNode& place) {
    std::map<std::string, Special> all;
    for (const auto& [name, member] : place.members()) {
      const Fields fields(member, {"id", "ids", "tokens"});
      fields.get("id").string();
      for (const JsonNode& id : fields.get("ids").items()) all[name].push_back(static_cast<TokenId>(id.count()));
      if (fields.get("tokens").items().size() != all[name].size())
        member.fail("'ids' and 'tokens' differ in length", template_label);
    }
    return all;
  }

  /// [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
  static std::vector<Piece> read_pieces(const JsonNode& place, const std::map<std::string, Special>& specials,
                                        bool is_pair) {
    static constexpr std::array<std::string_view, 2> texts{"A", "B"};
    std::vector<Piece> pieces;
    for (const JsonNode& item : place.items()) {
      const Fields post_processor_kinds(item, {"SpecialToken", "Sequence"});
      const auto text = post_processor_kinds.find("Sequence");
      const Fields fields(text ? *text : post_processor_kinds.get("SpecialToken"), {"id", "type_id"});
      Piece& piece = pieces.emplace_back();
      piece.type = static_cast<std::int32_t>(fields.get("type_id").count());
      if (text) {
        piece.text = static_cast<int>(fields.get("id").choice(texts));
        if (piece.text == 1 && !is_pair) item.fail("there is no second text", template_label);
      } else {
        const auto found = specials.find(fields.get("id").string());
        if (found == specials.end())
          item.fail(fmt::format("{} is not among 'special_tokens'", quote(fields.get("id").string())),
                    template_label);
        piece.special = found->second;
      }
    }
    return pieces;
  }

  std::vector<Piece> single_, pair_;
};

class Sequence : public PostProcessor {
 public:
  explicit Sequence(const Fields& fields) {
    for (const JsonNode& place : fields.get("processors").items()) {
      auto part = read_post_processor(place);
      if (is_template_ && (part->is_template() || part->added(false) > 0))
        place.fail("nothing that adds tokens can follow a template", template_label);
      is_template_ = is_template_ || part->is_template();
      parts_.push_back(std::move(part));
    }
  }

  std::size_t added(bool is_pair) const override {
    std::size_t count = 0;
    for (const auto& part : parts_) count += part->added(is_pair);
    return count;
  }
  bool trims() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->trims(); });
  }
  bool is_template() const override { return is_template_; }
  void apply(std::vector<Draft>& drafts, bool adds_special) const override {
    for (const auto& part : parts_) part->apply(drafts, adds_special);
  }

 private:
  std::vector<std::unique_ptr<const PostProcessor>> parts_;
  bool is_template_ = false;
};

constexpr std::string_view post_processor_kinds[] = {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence",
                                                     "TemplateProcessing"};

}  // namespace

std::unique_ptr<const PostProcessor> read_post_processor(const JsonNode& place) {
  const auto fields = [&](std::initializer_list<std::string_view> known) { return Fields(place, known); };
  const std::string_view kind = post_processor_kinds[read_kind(place, post_processor_kinds)];
  if (kind == "BertProcessing") return std::make_unique<Pairing>(fields({"sep", "cls"}), false);
  if (kind == "RobertaProcessing")
    return std::make_unique<Pairing>(fields({"sep", "cls", "trim_offsets", "add_prefix_space"}), true);
  if (kind == "ByteLevel")
    return std::make_unique<ByteLevel>(fields({"add_prefix_space", "trim_offsets", "use_regex"}));
  if (kind == "Sequence") return std::make_unique<Sequence>(fields({"processors"}));
  return std::make_unique<Template>(fields({"single", "pair", "special_tokens"}));
}

}  // namespace lathe::text
