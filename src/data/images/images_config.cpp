#include "data/images/images_config.h"

#include "base/error.h"

namespace lockstep {

void check_images_config(const ImagesConfig& config) {
  if (config.mean.size() != 3 || config.std.size() != 3) {
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
