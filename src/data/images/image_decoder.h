// Decodes images: JPEG with libjpeg-turbo, which transforms and colours only the wanted region, at
// a reduced size if requested; PNG with libpng. The format follows from the first bytes, not from
// the file name: ImageNet has a PNG named .JPEG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct ImageInfo {
  std::string format;  // "JPEG" or "PNG"; empty: neither
  int64_t width = 0, height = 0;
  int64_t channels = 0;      // 1 grey, 2 with alpha, 3 colour, 4 with alpha or CMYK
  int64_t bits = 8;          // per channel
  bool cmyk = false;         // CMYK or YCCK colours
  bool progressive = false;  // a JPEG that must be decoded whole for any region
};

struct PixelBox {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

// The decoded pixels, a little more than requested: 4 bytes each (red, green, blue, unused).
struct DecodedPixels {
  const uint8_t* pixels = nullptr;  // [box.height, stride], owned by the decoder
  int64_t stride = 0;               // bytes
  PixelBox box;                     // in pixels of the image at 1 / reduction of its size
  int64_t reduction = 1;
};

// Decodes images one after the other and reuses its memory. Not thread-safe.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Reads the header. `file` must live until decode() returns. Throws DataError (without the file's
  // name, which the caller adds as context) when it is not a JPEG or PNG or of an unsupported kind.
  const ImageInfo& open(std::span<const std::byte> file);
  const ImageInfo& info() const { return info_; }  // of the file that is open

  // Decodes `region` of the full image, which must lie within it, to the pixels that Pillow
  // decodes, at 1 / `reduction` of the size: 1, 2, 4 or 8 (PNG and CMYK are always decoded at 1).
  // The result is valid until the next call. Throws DataError when the file is damaged or truncated
  // before the end of the region.
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
