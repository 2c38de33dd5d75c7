// Operations on 8-bit colour images, in place, with the results of Pillow's ImageEnhance, ImageOps
// and Image.transform. Colour jitter and RandAugment consist of them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace lockstep {

struct ByteImage {
  uint8_t* pixels = nullptr;  // [height, width, 3], without gaps
  int64_t width = 0, height = 0;
  int64_t bytes() const { return 3 * width * height; }
};

// As in ImageEnhance: factor 0 gives black, grey or smoothed pixels, 1 changes nothing, more
// exaggerates.
void adjust_brightness(const ByteImage& image, double factor);
void adjust_contrast(const ByteImage& image, double factor);
void adjust_saturation(const ByteImage& image, double factor);
void adjust_sharpness(const ByteImage& image, double factor, std::vector<uint8_t>& space);
// Shifts the hue by `share` of the colour circle, -0.5 to 0.5 (torchvision's adjust_hue).
void adjust_hue(const ByteImage& image, double share);

void posterize(const ByteImage& image, int bits);         // keeps the upper bits
void solarize(const ByteImage& image, double threshold);  // inverts values >= threshold
void stretch_contrast(const ByteImage& image);            // ImageOps.autocontrast
void equalize(const ByteImage& image);

// For the matrix a b c d e f, output (x, y) is the input pixel nearest to (a x + b y + c, d x + e y
// + f), or black if there is none.
void transform_affine(const ByteImage& image, const std::array<double, 6>& matrix,
                      std::vector<uint8_t>& space);
// Returns the matrix of a rotation by `degrees`, counter-clockwise around the centre
// (Image.rotate).
std::array<double, 6> rotation_matrix(const ByteImage& image, double degrees);

}  // namespace lockstep
