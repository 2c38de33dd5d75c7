// Exports and imports a BERT as a folder of Hugging Face's transformers, including its tokenizer
// (docs/export.md).
#include "base/error.h"
#include "formats/weight_files.h"
#include "models/bert_weights.h"
#include "tasks/text_classification.h"

namespace lockstep {

int64_t TextClassification::write_folder(const ModelFolderOptions& options) {
  if (options.precision == "int8") {
    throw ConfigError("--precision int8: for translation only; expected fp32 or bf16");
  }
  if (options.format != "huggingface") {
    throw ConfigError("--format {}: not for texts with labels; expected huggingface",
                      options.format);
  }
  const int64_t bytes = write_bert_folder(options.folder, bert_, parameters_, options.precision);
  tokenizer_->save(options.folder);
  return bytes;
}

bool TextClassification::recognizes_folder(const fs::path& folder) const {
  return is_bert_folder(folder);
}

// open() reads the rest of config.json.
std::vector<std::pair<std::string, std::string>> TextClassification::folder_settings(
    const fs::path& folder) const {
  return {{"run.precision", "fp32"}};
}

void TextClassification::load_folder(const fs::path& folder) {
  const fs::path weights = find_weight_file(folder);
  if (weights.empty() || !load_foreign_weights(weights)) {
    throw DataError("{}: holds no weights of a BERT", folder.string());
  }
}

}  // namespace lockstep
