#include "models/text/tokenizer/config/tokenizer_config.h"

namespace lathe::text {

namespace {

using enum TokenizerKeyUse;

constexpr std::string_view of_files = "names a file or a class of the library; tokenizer.json is the tokenizer",
                           of_old = "belongs to tokenizers without a tokenizer.json",
                           of_batches = "Lathe pads batches itself, and masks the padding",
                           of_limits = "texts are cut where the caller asks for it",
                           of_dropped = "transformers 5 drops it where there is a tokenizer.json",
                           of_reply = "says how replies are parsed, not how they are made",
                           of_loading = "says how the library finds its files";

constexpr TokenizerKey all_keys[] = {
    {"add_bos_token", harmless, of_dropped},
    {"add_eos_token", harmless, of_dropped},
    {"add_prefix_space", checked, "tokenizer.json says it"},
    {"added_tokens_decoder", used},
    {"additional_special_tokens", used},
    {"auto_map", harmless, of_files},
    {"backend", harmless, of_files},
    {"bos_token", used},
    {"chat_control_tokens", refused, "Lathe does not clean control tokens out of messages"},
    {"chat_template", used},
    {"clean_up_tokenization_spaces", used},
    {"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", used},
    {"cls_token", used},
    {"do_basic_tokenize", harmless, of_old},
    {"do_lower_case", checked, "tokenizer.json says it"},
    {"eos_token", used},
    {"errors", harmless, "bytes that are not UTF-8 become U+FFFD, as with a tokenizer.json"},
    {"extra_ids", harmless, "the tokens are in tokenizer.json"},
    {"extra_special_tokens", used},
    {"files_loaded", harmless, of_loading},
    {"fix_mistral_regex", refused, "Lathe takes the pre-tokenizer as tokenizer.json has it"},
    {"from_slow", harmless, of_old},
    {"gguf_file", refused, "Lathe reads tokenizers from tokenizer.json"},
    {"init_inputs", harmless, of_old},
    {"is_local", harmless, of_loading},
    {"keep_accents", harmless, of_old},
    {"legacy", harmless, of_old},
    {"local_files_only", harmless, of_loading},
    {"mask_token", used},
    {"max_len", harmless, of_limits},
    {"max_length", harmless, of_limits},
    {"merges_file", harmless, of_files},
    {"model_input_names", harmless, "Lathe gives a model the inputs that it needs"},
    {"model_max_length", harmless, "bounds the texts of embeddings (load_sentence_encoder), and no others"},
    {"model_specific_special_tokens", used},
    {"name_or_path", harmless, of_loading},
    {"never_split", harmless, of_old},
    {"pad_to_multiple_of", harmless, of_batches},
    {"pad_token", used},
    {"pad_token_type_id", harmless, of_batches},
    {"padding_side", harmless, of_batches},
    {"processor_class", harmless, of_files},
    {"remove_space", harmless, of_old},
    {"response_schema", harmless, of_reply},
    {"response_template", harmless, of_reply},
    {"sep_token", used},
    {"sp_model_kwargs", harmless, of_old},
    {"spaces_between_special_tokens", harmless, of_old},
    {"special_tokens_map_file", harmless, of_loading},
    {"split_special_tokens", refused, "Lathe finds special tokens in texts"},
    {"stride", harmless, of_limits},
    {"strip_accents", checked, "tokenizer.json says it"},
    {"tokenize_chinese_chars", checked, "tokenizer.json says it"},
    {"tokenizer_class", harmless, of_files},
    {"tokenizer_file", harmless, of_files},
    {"trim_offsets", harmless, "tokenizer.json says which offsets are trimmed"},
    {"truncation_side", used},
    {"truncation_strategy", harmless, of_limits},
    {"unk_id", harmless, of_old},
    {"unk_token", used},
    {"use_default_system_prompt", harmless, of_old},
    {"use_fast", harmless, of_files},
    {"verbose", harmless, "says what the library logs"},
    {"vocab_file", harmless, of_files},
};

}  // namespace

std::span<const TokenizerKey> tokenizer_keys() { return all_keys; }

}  // namespace lathe::text
