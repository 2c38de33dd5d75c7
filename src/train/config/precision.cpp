#include "train/config/precision.h"

#include "base/log.h"
#include "config/source.h"
#include "dist/collectives/cuda.h"
#include "kernels/kernel_table.h"
#include "train/config/run_config.h"
#include "train/parts/agreement.h"

namespace lockstep {

namespace {

// Packs formats into one line of text to send between ranks.
std::string packed(const NumberFormats& formats) {
  return fmt::format("{}{}{}", formats.bf16 ? 'b' : '-', formats.fp16 ? 'h' : '-', formats.why);
}

NumberFormats unpacked(const std::string& text) {
  return {.bf16 = text.at(0) == 'b', .fp16 = text.at(1) == 'h', .why = text.substr(2)};
}

// Returns the precision of the run in the folder; "auto" where it does not say.
std::string saved_precision(const RunFolder& folder) {
  if (!fs::exists(folder.config())) return "auto";
  return ConfigSource::from_file(folder.config()).name_at("run.precision", "auto");
}

// Every rank logs it; the console shows rank 0's line.
void note_slow_format(const std::string& precision, const NumberFormats& mine) {
  if (mine.has(precision)) return;
  log_info("{} is slow here: {}; run.precision = \"auto\" in a new run takes what is fast",
           precision, mine.why);
}

}  // namespace

NumberFormats device_formats(bool gpu, int index) {
  if (!gpu) return cpu_formats(kernels().isa, kernels().fast_bf16);
  const std::optional<GpuModel> model = gpu_model(index);
  if (model) return gpu_formats(model->name, model->major, model->minor);
  return {.bf16 = false, .fp16 = false, .why = "the driver does not tell what the GPU computes"};
}

void settle_precision(RunSection& run, bool gpu, int index) {
  if (run.precision != "auto") return;
  run.precision = choose_precision({{"", device_formats(gpu, index)}}).precision;
}

std::string agree_on_precision(World& world, RunSection& run, const RunFolder& folder,
                               std::optional<int> config_holder, const NumberFormats& mine) {
  if (run.precision != "auto") {
    note_slow_format(run.precision, mine);
    return run.precision;
  }
  if (config_holder) {
    const std::string here = world.rank() == *config_holder ? saved_precision(folder) : "";
    const std::string began =
        world.all_gather_strings(here)[static_cast<std::size_t>(*config_holder)];
    if (began != "auto") {
      run.precision = began;
      note_slow_format(began, mine);
      return fmt::format("{} (auto: as the run began)", began);
    }
  }
  const std::vector<std::string> names = world.all_gather_strings(rank_and_host(world));
  const std::vector<std::string> formats = world.all_gather_strings(packed(mine));
  std::vector<NamedFormats> all;
  for (std::size_t i = 0; i < names.size(); ++i) all.push_back({names[i], unpacked(formats[i])});
  const PrecisionChoice choice = choose_precision(all);
  run.precision = choice.precision;
  return fmt::format("{} (auto: {})", choice.precision, choice.why);
}

}  // namespace lockstep
