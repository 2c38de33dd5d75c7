#include "data/images/images_config.h"

#include "base/error.h"

namespace lockstep {

const std::vector<double>& pixel_mean(const ImagesConfig& config) {
  static const std::vector<double> imagenet = {0.485, 0.456, 0.406};
  return config.mean.empty() ? imagenet : config.mean;
}

const std::vector<double>& pixel_deviation(const ImagesConfig& config) {
  static const std::vector<double> imagenet = {0.229, 0.224, 0.225};
  return config.std.empty() ? imagenet : config.std;
}

void check_images_config(const ImagesConfig& config) {
  if (pixel_mean(config).size() != 3 || pixel_deviation(config).size() != 3) {
    throw ConfigError("images.mean and images.std: expected 3 numbers each, got {} and {}",
                      config.mean.size(), config.std.size());
  }
  for (double deviation : config.std) {
    if (!(deviation > 0)) throw ConfigError("images.std: expected numbers > 0, got {}", deviation);
  }
  if (config.eval_resize != 0 && config.eval_resize < config.size) {
    throw ConfigError("images.eval_resize: {} is smaller than the crop, images.size = {}",
                      config.eval_resize, config.size);
  }
}

}  // namespace lockstep
