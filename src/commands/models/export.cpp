#include "commands/models/export.h"

#include "base/text.h"
#include "commands/process/mirrored_run.h"
#include "commands/process/process_setup.h"
#include "tasks/uses.h"
#include "train/checkpoint/saved_run.h"

namespace lockstep {

int export_model(const Arguments& arguments) {
  std::vector<std::string> words;
  std::string out;
  SavedRunOptions run;
  ModelFolderOptions options;
  CommandLine app(
      "Writes a run's model as a folder that others load: of translation transformers, "
      "CTranslate2, "
      "lockstep translate or (edge) lockstep-translate, of images transformers, timm or "
      "torchvision, of texts transformers.",
      "lockstep export");
  app.add_option("words", words, "RUN, and key=value words such as decoding.beam_size=5");
  app.add_option("--format", options.format,
                 "huggingface; of images timm or torchvision, of translation edge as well")
      ->one_of({"huggingface", "timm", "torchvision", "edge"})
      ->capture_default_str();
  app.add_option("--out", out, "the folder to write; holds no model yet")->required();
  app.add_option("--checkpoint", run.checkpoint, "best, newest or step_N")->capture_default_str();
  app.add_option("--precision", options.precision,
                 "fp32, bf16, or int8 (translation, for lockstep and edge)")
      ->one_of({"fp32", "bf16", "int8"})
      ->capture_default_str();
  if (!app.parse(arguments)) return kExitOk;
  run.words = take_settings(words);
  run.words.push_back("run.device=cpu");
  if (words.size() != 1) throw ConfigError("export: expected one run folder");

  prepare_process({});
  SavedRun saved = open_saved_run(local_run(words.front(), run), run);
  options.folder = out;
  options.run_folder = words.front();
  ModelFolderUse* model = saved.config.task->model_folders();
  if (model == nullptr) {
    throw ConfigError("{}: its task is {}, which cannot be exported", words.front(),
                      saved.config.task_name);
  }
  const int64_t bytes = model->write_folder(options);
  fmt::print("{}: {} in {}\n", out, short_bytes(static_cast<double>(bytes)), options.precision);
  return kExitOk;
}

}  // namespace lockstep
