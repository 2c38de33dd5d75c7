// A configuration, and words that change it.
#include "config/source.h"
#include "data/images/images_config.h"
#include "fuzz.h"

FUZZ(bytes) {
  const std::string_view word = lockstep::take_part(bytes);
  auto source = lockstep::ConfigSource::from_text(bytes, "config.toml");
  if (!word.empty()) source.override_with(std::string(word));
  lockstep::ImagesConfig images;
  source.read("images", images);
  source.finish();
}
