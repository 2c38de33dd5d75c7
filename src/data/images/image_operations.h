// Operations on 8-bit colour images, in place, with the results of Pillow's ImageEnhance, ImageOps
// and Image.transform: what colour jitter and RandAugment are made of.
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

// ImageEnhance: factor 0 is black, grey, or smoothed; 1 changes nothing; beyond 1 exaggerates.
void adjust_brightness(const ByteImage& image, double factor);
void adjust_contrast(const ByteImage& image, double factor);
void adjust_saturation(const ByteImage& image, double factor);
void adjust_sharpness(const ByteImage& image, double factor, std::vector<uint8_t>& space);
// By `share` of the colour circle, -0.5 to 0.5 (torchvision's adjust_hue).
void adjust_hue(const ByteImage& image, double share);

void posterize(const ByteImage& image, int bits);         // keeps the upper bits
void solarize(const ByteImage& image, double threshold);  // inverts values from it on
void stretch_contrast(const ByteImage& image);            // ImageOps.autocontrast
void equalize(const ByteImage& image);

// Output (x, y) shows input (a x + b y + c, d x + e y + f) for the matrix a b c d e f, the nearest
// pixel; black where there is none.
void transform_affine(const ByteImage& image, const std::array<double, 6>& matrix,
                      std::vector<uint8_t>& space);
// The matrix of a rotation by `degrees`, counter-clockwise about the centre (Image.rotate).
std::array<double, 6> rotation_matrix(const ByteImage& image, double degrees);

}  // namespace lockstep
