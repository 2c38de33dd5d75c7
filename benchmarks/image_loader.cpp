// Images a second that the loader makes for training: random resized crop, flip, normalise to fp32.
// One epoch to warm up, then the median of five parts. benchmarks/notes/2026-11-image-loader.md has
// figures.
//
//   image_loader DATA [threads] [epochs a part] [key=value ...]
//
// DATA: a folder with train/CLASS/FILE, or shards. Keys are size, batch, exact (0 or 1), bf16 (0 or
// 1).
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "batches/image_loader.h"

namespace lockstep {
namespace {

constexpr int kParts = 5;

struct Settings {
  std::string data;
  int64_t threads = 1, epochs = 4;
  std::map<std::string, int64_t> keys{{"size", 224}, {"batch", 64}, {"exact", 0}, {"bf16", 0}};
};

Settings parse(int argc, char** argv) {
  Settings out;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      words.push_back(word);
    } else if (out.keys.contains(word.substr(0, equals))) {
      out.keys[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
    } else {
      throw ConfigError("{}: expected size, batch, exact or bf16", word);
    }
  }
  if (words.empty() || words.size() > 3) throw ConfigError("image_loader DATA [threads] [epochs]");
  out.data = words[0];
  if (words.size() > 1) out.threads = std::stoll(words[1]);
  if (words.size() > 2) out.epochs = std::stoll(words[2]);
  return out;
}

// Sum over a few values, so that nothing is left undone.
double run_epochs(const ImageLoader& loader, int64_t images, const Settings& s, int64_t first) {
  std::vector<int64_t> order(static_cast<std::size_t>(images));
  std::iota(order.begin(), order.end(), int64_t{0});
  double sum = 0;
  int64_t batch = s.keys.at("batch");
  for (int64_t epoch = first; epoch < first + s.epochs; ++epoch) {
    for (int64_t begin = 0; begin < images; begin += batch) {
      auto part =
          std::span(order).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(std::min(batch, images - begin)));
      ImageTensors made = loader.train_batch(part, epoch, s.keys.at("size"));
      sum += made.images[0][0][0][0].item<double>();
    }
  }
  return sum;
}

void run(const Settings& s) {
  std::unique_ptr<ImageSet> set = open_image_set(s.data, "train");
  ImagesConfig config;
  config.data = s.data;
  config.size = s.keys.at("size");
  config.eval_resize = 0;
  config.exact_decoding = s.keys.at("exact") != 0;
  ImageLoader loader(*set, config,
                     {.seed = 1,
                      .threads = s.threads,
                      .compute = s.keys.at("bf16") != 0 ? at::kBFloat16 : at::kFloat});
  double sum = run_epochs(loader, set->size(), s, 0);
  std::vector<double> rates;
  for (int part = 0; part < kParts; ++part) {
    auto start = std::chrono::steady_clock::now();
    sum += run_epochs(loader, set->size(), s, 1 + part * s.epochs);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(set->size() * s.epochs) / seconds.count());
  }
  std::sort(rates.begin(), rates.end());
  fmt::print(
      "{{\"images\": {}, \"threads\": {}, \"images_per_s\": {:.1f}, \"lowest\": {:.1f}, "
      "\"highest\": {:.1f}, \"check\": {:.4f}}}\n",
      set->size(), s.threads, rates[kParts / 2], rates.front(), rates.back(), sum);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    torch::set_num_threads(1);
    lockstep::run(lockstep::parse(argc, argv));
    return 0;
  } catch (lockstep::Error& error) {
    fmt::print(stderr, "error: {}\n", error.describe());
    return error.exit_code();
  }
}
