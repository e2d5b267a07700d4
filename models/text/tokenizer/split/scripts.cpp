#include <fmt/core.h>

#include <sstream>

#include "models/text/tokenizer/split/pre_tokenizer.h"

namespace lathe::text {

namespace {

/// Scripts in SentencePiece's rules, frequent ones first. All other characters belong to the preceding script.
constexpr std::string_view scripts =
    "Latin Cyrillic Greek Arabic Devanagari Hangul Hebrew Thai Inherited Armenian Bengali Georgian Tamil Telugu "
    "Adlam Ahom Anatolian_Hieroglyphs Avestan Balinese Bamum Bassa_Vah Batak Bhaiksuki Bopomofo Brahmi Braille "
    "Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Coptic Cuneiform Cypriot "
    "Deseret Duployan Egyptian_Hieroglyphs Elbasan Ethiopic Glagolitic Gothic Grantha Gujarati Gurmukhi Hanunoo "
    "Hatran Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Kayah_Li "
    "Kharoshthi Khmer Khojki Khudawadi Lao Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Malayalam "
    "Mandaic Manichaean Marchen Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi "
    "Mongolian Mro Multani Myanmar Nabataean New_Tai_Lue Newa Nko Ogham Ol_Chiki Old_Hungarian Old_Italic "
    "Old_North_Arabian Old_Permic Old_Persian Old_South_Arabian Old_Turkic Oriya Osage Osmanya Pahawh_Hmong "
    "Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian "
    "Siddham SignWriting Sinhala Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham "
    "Tai_Viet Takri Tangut Thaana Tibetan Tifinagh Tirhuta Ugaritic Vai Warang_Citi Yi";

/// Returns a pattern for runs of one script, marked with its number. Hiragana and Katakana are treated as Han; a
/// space has no script.
Regex script_runs() {
  std::string pattern =
      R"([^\P{sc:Common}\x20\x{30FC}]+(*:0)|[\p{sc:Han}\p{sc:Hiragana}\p{sc:Katakana}\x{30FC}]+(*:1))";
  std::istringstream names{std::string(scripts)};
  int number = 2;
  for (std::string script; names >> script;) pattern += fmt::format("|\\p{{sc:{}}}+(*:{})", script, number++);
  return Regex::native(pattern);
}

class ScriptSplit : public PreTokenizer {
 public:
  /// Splits where the script changes. Text before the first character of a script is dropped.
  void apply(Words& words, MatchMemory& memory) const override {
    split_words(words, SplitBehavior::removed, true, [&](std::string_view text, const auto& found) {
      std::size_t begin = text.size();
      Regex::Match run;
      for (int script = -1; runs_.search(text, run.end, memory, run);) {
        if (run.mark == script) continue;
        if (script >= 0) found(begin, run.begin);
        begin = run.begin;
        script = run.mark;
      }
      if (begin < text.size()) found(begin, text.size());
    });
  }

 private:
  Regex runs_ = script_runs();
};

}  // namespace

std::unique_ptr<const PreTokenizer> make_script_splitter() { return std::make_unique<ScriptSplit>(); }

}  // namespace lathe::text
