#include "train/config/precision.h"

#include <algorithm>

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

bool NumberFormats::has(const std::string& precision) const {
  return precision == "bf16" ? bf16 : precision == "fp16" ? fp16 : true;
}

NumberFormats cpu_formats(std::string_view isa) {
  if (isa == "amx") return {.bf16 = true, .fp16 = false, .why = "this CPU has amx_bf16"};
  if (isa == "avx512_dot") return {.bf16 = true, .fp16 = false, .why = "this CPU has avx512_bf16"};
  return {.bf16 = false,
          .fp16 = false,
          .why = fmt::format("this CPU ({}) has neither avx512_bf16 nor amx_bf16", isa)};
}

NumberFormats gpu_formats(const std::string& name, int major, int minor) {
  NumberFormats out{.bf16 = major >= 8, .fp16 = major >= 7, .why = ""};
  out.why = fmt::format("the {} has compute capability {}.{}", name, major, minor);
  if (!out.bf16) out.why += out.fp16 ? ", bf16 needs 8.0" : ", fp16 needs 7.0 and bf16 8.0";
  return out;
}

NumberFormats device_formats(bool gpu, int index) {
  if (!gpu) return cpu_formats(kernels().isa);
  const std::optional<GpuModel> model = gpu_model(index);
  if (model) return gpu_formats(model->name, model->major, model->minor);
  return {.bf16 = false, .fp16 = false, .why = "the driver does not tell what the GPU computes"};
}

PrecisionChoice choose_precision(const std::vector<NamedFormats>& all) {
  auto first_without = [&](const auto& has) {
    return std::find_if(all.begin(), all.end(),
                        [&](const NamedFormats& rank) { return !has(rank.formats); });
  };
  // Where a format is ruled out, the first who does so tells why.
  auto told_by = [&](const auto& rank) {
    return (rank == all.begin() ? "" : rank->name + ": ") + rank->formats.why;
  };
  const auto no_bf16 = first_without([](const NumberFormats& f) { return f.bf16; });
  if (no_bf16 == all.end()) return {"bf16", all.front().formats.why};
  const auto no_fp16 = first_without([](const NumberFormats& f) { return f.fp16; });
  if (no_fp16 == all.end()) return {"fp16", told_by(no_bf16)};
  const auto neither = first_without([](const NumberFormats& f) { return f.bf16 || f.fp16; });
  return {"fp32", told_by(neither == all.end() ? no_bf16 : neither)};
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
