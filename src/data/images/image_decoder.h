// Pixels out of an encoded image: JPEG through libjpeg-turbo, where only the wanted region is
// transformed and coloured, at a reduced size if asked for; PNG through libpng. Files are told
// apart by their first bytes, not by their names: ImageNet has a PNG named .JPEG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct ImageInfo {
  std::string format;  // "JPEG", "PNG"; empty: neither
  int64_t width = 0, height = 0;
  int64_t channels = 0;      // 1 grey, 2 with alpha, 3 colour, 4 with alpha or CMYK
  int64_t bits = 8;          // of a channel
  bool cmyk = false;         // CMYK or YCCK
  bool progressive = false;  // JPEG: all of it is decoded whatever the region
};

struct PixelBox {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

// What was decoded, a little more than was asked for: pixels of 4 bytes (red, green, blue, unused).
struct DecodedPixels {
  const uint8_t* pixels = nullptr;  // [box.height, stride], owned by the decoder
  int64_t stride = 0;               // bytes
  PixelBox box;                     // in pixels of the image at 1 / reduction
  int64_t reduction = 1;
};

// One image after the other; its memory is used again. For one thread at a time.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Reads the header. `file` must stay until decode() is done. Throws DataError (without the
  // file's name: add it as context) for what is no JPEG or PNG, or of a kind not supported.
  const ImageInfo& open(std::span<const std::byte> file);
  const ImageInfo& info() const { return info_; }  // of the open file

  // The pixels of `region` (of the full image, within it), those that Pillow decodes, at
  // 1 / `reduction`: 1, 2, 4 or 8 (PNG and CMYK come at 1 always). Valid until the next call.
  // Throws DataError when the file is damaged or cut off before the end of the region.
  DecodedPixels decode(const PixelBox& region, int64_t reduction = 1);

 private:
  struct Jpeg;
  DecodedPixels decode_png();
  DecodedPixels decode_jpeg(const PixelBox& region, int64_t reduction);

  std::unique_ptr<Jpeg> jpeg_;
  std::span<const std::byte> file_;
  ImageInfo info_;
  std::vector<uint8_t> pixels_, row_;
};

}  // namespace lockstep
