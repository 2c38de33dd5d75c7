#include "commands/export.h"

#include "base/text.h"
#include "commands/process_setup.h"
#include "tasks/classifier_export.h"
#include "tasks/text_classification.h"
#include "tasks/translation_export.h"
#include "train/checkpoint/saved_run.h"

namespace lockstep {

namespace {

// What the task's kind of model is exported as; returns the bytes written.
int64_t write_model(Task& task, const std::string& task_name, const std::string& format,
                    const ExportOptions& options) {
  if (auto* images = dynamic_cast<ImageClassification*>(&task)) {
    if (options.precision == "int8") {
      throw ConfigError("--precision int8: for translation only; expected fp32 or bf16");
    }
    return export_classifier(*images, {options.folder, flavour_named(format), options.precision});
  }
  if (auto* texts = dynamic_cast<TextClassification*>(&task)) {
    if (options.precision == "int8") {
      throw ConfigError("--precision int8: for translation only; expected fp32 or bf16");
    }
    if (format != "huggingface") {
      throw ConfigError("--format {}: for images only; expected huggingface", format);
    }
    return export_text_classifier(*texts, options.folder, options.precision);
  }
  auto* translation = dynamic_cast<Translation*>(&task);
  if (translation == nullptr) {
    throw ConfigError("{}: its task is {}, which cannot be exported", options.run_folder.string(),
                      task_name);
  }
  if (format != "huggingface") {
    throw ConfigError("--format {}: for images only; expected huggingface", format);
  }
  return export_translation(*translation, options);
}

}  // namespace

int export_model(const Arguments& arguments) {
  std::vector<std::string> words;
  std::string format = "huggingface", out;
  SavedRunOptions run;
  ExportOptions options;
  CommandLine app(
      "Writes a run's model as a folder that others load: of translation transformers, CTranslate2 "
      "and lockstep translate, of images transformers, timm or torchvision, of texts transformers.",
      "lockstep export");
  app.add_option("words", words, "RUN, and key=value words such as decoding.beam_size=5");
  app.add_option("--format", format, "huggingface; of images timm or torchvision as well")
      ->one_of({"huggingface", "timm", "torchvision"})
      ->capture_default_str();
  app.add_option("--out", out, "the folder to write; holds no model yet")->required();
  app.add_option("--checkpoint", run.checkpoint, "best, newest or step_N")->capture_default_str();
  app.add_option("--precision", options.precision, "fp32, bf16, or int8 (for lockstep alone)")
      ->one_of({"fp32", "bf16", "int8"})
      ->capture_default_str();
  if (!app.parse(arguments)) return kExitOk;
  run.words = take_settings(words);
  run.words.push_back("run.device=cpu");
  if (words.size() != 1) throw ConfigError("export: expected one run folder");

  prepare_process({});
  SavedRun saved = open_saved_run(words.front(), run);
  options.folder = out;
  options.run_folder = words.front();
  const int64_t bytes = write_model(*saved.config.task, saved.config.task_name, format, options);
  fmt::print("{}: {} in {}\n", out, short_bytes(static_cast<double>(bytes)), options.precision);
  return kExitOk;
}

}  // namespace lockstep
