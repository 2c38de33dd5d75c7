// A JPEG or PNG: its head, and its pixels, whole and in part.
#include "data/images/image_decoder.h"

#include "fuzz.h"

FUZZ(bytes) {
  static lockstep::ImageDecoder decoder;
  const lockstep::ImageInfo& info = decoder.open(std::as_bytes(std::span(bytes)));
  if (info.format.empty() || info.width * info.height > 1'000'000) return;
  lockstep::use(decoder.decode({0, 0, info.width, info.height}).pixels[0]);
  if (info.width > 8 && info.height > 8) {
    lockstep::use(decoder.decode({1, 1, info.width / 2, info.height / 2}, 2).pixels[0]);
  }
}
