#include "train/checkpoint/initial_weights.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_tensors.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

// Rejects files of torch.save, which run code when they are read, and says how to convert them.
void check_format(const fs::path& file) {
  const std::string kind = file.extension().string();
  if (kind != ".pth" && kind != ".pt" && kind != ".bin") return;
  DataError error("run.load_model: {}: a file of torch.save, expected safetensors", file.string());
  error.set_advice(
      fmt::format("python -c \"import torch, safetensors.torch as s; s.save_file(torch.load('{}', "
                  "weights_only=True), '{}.safetensors')\"",
                  file.string(), file.stem().string()));
  throw error;
}

fs::path tensor_file_of(const fs::path& source) {
  if (fs::is_regular_file(source)) {
    check_format(source);
    return source;
  }
  if (fs::exists(source / "model.safetensors")) return source / "model.safetensors";
  if (fs::exists(source / "DONE")) {
    std::string damage = checkpoint_damage(source);
    if (damage.empty()) return weights_for_use(source);
    throw DataError("run.load_model: {}: {}", source.string(), damage);
  }
  RunFolder run(source);
  if (fs::exists(run.config())) return weights_for_use(find_checkpoint(run.checkpoints(), "best"));
  ConfigError error(
      "run.load_model: {}: {}", source.string(),
      fs::exists(source) ? "neither a run nor a checkpoint" : "there is no such thing");
  error.set_advice(
      "a run folder, RUN/checkpoints/step_N, a .safetensors file, or a folder with "
      "model.safetensors");
  throw error;
}

// Lists the first few names and says how many more there are.
std::string list_some(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, names.size())));
  std::string more =
      names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "";
  return join(shown, ", ") + more;
}

}  // namespace

void load_initial_weights(const fs::path& source, Task& task) {
  fs::path file = tensor_file_of(source);
  if (task.load_foreign_weights(file)) return;
  Parameters& parameters = task.parameters();
  MatchedWeights matched = load_matching_weights(file, parameters);
  if (matched.copied.empty()) {
    DataError error("run.load_model: {}: none of its tensors fits a weight of this model",
                    file.string());
    error.set_cause(matched.other_shape.empty()
                        ? "it holds " + list_some(matched.unused)
                        : "other shapes: " + list_some(matched.other_shape));
    throw error;
  }
  log_info("{} of {} weight tensors from {}", matched.copied.size(),
           parameters.list().size() + parameters.buffer_list().size(), file.string());
  auto tell = [](const char* what, const std::vector<std::string>& names) {
    if (!names.empty()) log_info("  {}: {}", what, list_some(names));
  };
  tell("of another shape, left as initialised", matched.other_shape);
  tell("not there, left as initialised", matched.absent);
  tell("there, but not in this model", matched.unused);
}

}  // namespace lockstep
