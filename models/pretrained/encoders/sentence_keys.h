#pragma once

#include "models/pretrained/config/key_table.h"

/// Rules for the keys in the files of sentence-transformers.
namespace lathe::pretrained {

const KeyTable& module_keys();            ///< an entry of modules.json
const KeyTable& pooling_keys();           ///< config.json of Pooling
const KeyTable& normalize_keys();         ///< config.json of Normalize
const KeyTable& sentence_encoder_keys();  ///< sentence_bert_config.json, of the module Transformer

}  // namespace lathe::pretrained
