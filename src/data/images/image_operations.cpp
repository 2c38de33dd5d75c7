#include "data/images/image_operations.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lockstep {

namespace {

using Table = std::array<uint8_t, 256>;

// Computes the luma of ITU-R BT.601 in 16-bit fixed point.
int grey_of(const uint8_t* p) { return (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16; }

// Blends like Image.blend: truncates towards zero instead of rounding.
uint8_t blend(int from, int to, float factor) {
  float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<uint8_t>(value);
}

void blend_from_constant(const ByteImage& image, int constant, double factor) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = blend(constant, i, static_cast<float>(factor));
  for (int64_t i = 0; i < image.bytes(); ++i) image.pixels[i] = table[image.pixels[i]];
}

// Applies one table per channel.
void look_up(const ByteImage& image, const std::array<Table, 3>& tables) {
  for (int64_t i = 0; i < image.bytes(); i += 3) {
    for (int c = 0; c < 3; ++c) image.pixels[i + c] = tables[c][image.pixels[i + c]];
  }
}

using Histogram = std::array<int64_t, 256>;

std::array<Histogram, 3> histograms(const ByteImage& image) {
  std::array<Histogram, 3> out{};
  for (int64_t i = 0; i < image.bytes(); i += 3) {
    for (int c = 0; c < 3; ++c) ++out[c][image.pixels[i + c]];
  }
  return out;
}

Table identity_table() {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
  return table;
}

uint8_t clipped(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

struct Hsv {
  uint8_t h, s, v;
};

// Uses single precision where Pillow does, because the result is truncated to 8 bits.
Hsv to_hsv(const uint8_t* p) {
  uint8_t most = std::max({p[0], p[1], p[2]}), least = std::min({p[0], p[1], p[2]});
  if (most == least) return {0, 0, most};
  auto range = static_cast<float>(most - least);
  float s = range / static_cast<float>(most);
  auto away = [&](int c) { return static_cast<float>(most - p[c]) / range; };
  float h;
  if (p[0] == most) {
    h = away(2) - away(1);
  } else if (p[1] == most) {
    h = static_cast<float>(2.0 + away(0) - away(2));
  } else {
    h = static_cast<float>(4.0 + away(1) - away(0));
  }
  h = static_cast<float>(std::fmod(h / 6.0 + 1.0, 1.0));
  return {clipped(static_cast<int>(h * 255.0)), clipped(static_cast<int>(s * 255.0)), most};
}

void from_hsv(const Hsv& in, uint8_t* p) {
  if (in.s == 0) {
    p[0] = p[1] = p[2] = in.v;
    return;
  }
  int sector = static_cast<int>(std::floor(static_cast<float>(in.h) * 6.0 / 255.0));
  auto f = static_cast<float>(static_cast<float>(in.h) * 6.0 / 255.0 - static_cast<float>(sector));
  auto s = static_cast<float>(static_cast<float>(in.s) / 255.0);
  auto value = [&](double share) {
    return clipped(static_cast<int>(std::round(static_cast<float>(in.v) * share)));
  };
  uint8_t low = value(1.0 - s), down = value(1.0 - s * f), up = value(1.0 - s * (1.0 - f));
  const uint8_t colours[6][3] = {{in.v, up, low},   {down, in.v, low}, {low, in.v, up},
                                 {low, down, in.v}, {up, low, in.v},   {in.v, low, down}};
  std::memcpy(p, colours[sector % 6], 3);
}

}  // namespace

void adjust_brightness(const ByteImage& image, double factor) {
  blend_from_constant(image, 0, factor);
}

void adjust_contrast(const ByteImage& image, double factor) {
  int64_t sum = 0;
  for (int64_t i = 0; i < image.bytes(); i += 3) sum += grey_of(image.pixels + i);
  double mean = static_cast<double>(sum) / static_cast<double>(image.width * image.height);
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): as Pillow rounds.
  blend_from_constant(image, static_cast<int>(mean + 0.5), factor);
}

void adjust_saturation(const ByteImage& image, double factor) {
  for (int64_t i = 0; i < image.bytes(); i += 3) {
    uint8_t* p = image.pixels + i;
    int grey = grey_of(p);
    for (int c = 0; c < 3; ++c) p[c] = blend(grey, p[c], static_cast<float>(factor));
  }
}

void adjust_sharpness(const ByteImage& image, double factor, std::vector<uint8_t>& space) {
  space.assign(image.pixels, image.pixels + image.bytes());
  int64_t stride = 3 * image.width;
  // The filter is ImageFilter.SMOOTH; the border is not smoothed and so stays. Sums of 13ths are
  // never halves, so integers round like Pillow's floats.
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t* in = space.data() + y * stride;
    uint8_t* out = image.pixels + y * stride;
    for (int64_t x = 3; x + 3 < stride; ++x) {
      int sum = 4 * in[x];
      for (int64_t dy = -stride; dy <= stride; dy += stride) {
        sum += in[x + dy - 3] + in[x + dy] + in[x + dy + 3];
      }
      out[x] = blend((2 * sum + 13) / 26, in[x], static_cast<float>(factor));
    }
  }
}

void adjust_hue(const ByteImage& image, double share) {
  auto shift = static_cast<uint8_t>(static_cast<int>(share * 255));
  for (int64_t i = 0; i < image.bytes(); i += 3) {
    Hsv hsv = to_hsv(image.pixels + i);
    hsv.h = static_cast<uint8_t>(hsv.h + shift);
    from_hsv(hsv, image.pixels + i);
  }
}

void posterize(const ByteImage& image, int bits) {
  auto mask = static_cast<uint8_t>(0xff << (8 - bits));
  for (int64_t i = 0; i < image.bytes(); ++i) image.pixels[i] &= mask;
}

void solarize(const ByteImage& image, double threshold) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i < threshold ? i : 255 - i);
  for (int64_t i = 0; i < image.bytes(); ++i) image.pixels[i] = table[image.pixels[i]];
}

void stretch_contrast(const ByteImage& image) {
  std::array<Histogram, 3> counts = histograms(image);
  std::array<Table, 3> tables;
  for (int c = 0; c < 3; ++c) {
    int low = 0, high = 255;
    while (low < 255 && counts[c][low] == 0) ++low;
    while (high > 0 && counts[c][high] == 0) --high;
    tables[c] = identity_table();
    if (high <= low) continue;
    double scale = 255.0 / (high - low), offset = -low * scale;
    for (int i = 0; i < 256; ++i) tables[c][i] = clipped(static_cast<int>(i * scale + offset));
  }
  look_up(image, tables);
}

void equalize(const ByteImage& image) {
  std::array<Histogram, 3> counts = histograms(image);
  std::array<Table, 3> tables;
  for (int c = 0; c < 3; ++c) {
    tables[c] = identity_table();
    int last = 255;
    while (last > 0 && counts[c][last] == 0) --last;
    int64_t step = (image.width * image.height - counts[c][last]) / 255;
    if (step == 0) continue;
    int64_t n = step / 2;
    for (int i = 0; i < 256; ++i) {
      tables[c][i] = static_cast<uint8_t>(std::min<int64_t>(255, n / step));
      n += counts[c][i];
    }
  }
  look_up(image, tables);
}

void transform_affine(const ByteImage& image, const std::array<double, 6>& matrix,
                      std::vector<uint8_t>& space) {
  space.assign(image.pixels, image.pixels + image.bytes());
  // Uses 16 fractional bits and pixel centres, like Pillow.
  auto fixed = [](double value) { return static_cast<int64_t>(std::floor(value * 65536 + 0.5)); };
  const auto& [a, b, c, d, e, f] = matrix;
  int64_t step_x[2] = {fixed(a), fixed(d)}, step_y[2] = {fixed(b), fixed(e)};
  int64_t line[2] = {fixed(c + a * 0.5 + b * 0.5), fixed(f + d * 0.5 + e * 0.5)};
  for (int64_t y = 0; y < image.height; ++y) {
    int64_t at[2] = {line[0], line[1]};
    uint8_t* out = image.pixels + y * 3 * image.width;
    for (int64_t x = 0; x < image.width; ++x, out += 3) {
      int64_t from_x = at[0] >> 16, from_y = at[1] >> 16;
      bool inside = from_x >= 0 && from_x < image.width && from_y >= 0 && from_y < image.height;
      if (inside) {
        std::memcpy(out, space.data() + (from_y * image.width + from_x) * 3, 3);
      } else {
        std::memset(out, 0, 3);
      }
      at[0] += step_x[0];
      at[1] += step_x[1];
    }
    line[0] += step_y[0];
    line[1] += step_y[1];
  }
}

std::array<double, 6> rotation_matrix(const ByteImage& image, double degrees) {
  double angle = -degrees * 3.141592653589793 / 180;
  double cosine = std::cos(angle), sine = std::sin(angle);
  double x = static_cast<double>(image.width) / 2, y = static_cast<double>(image.height) / 2;
  return {cosine, sine, x - cosine * x - sine * y, -sine, cosine, y + sine * x - cosine * y};
}

}  // namespace lockstep
