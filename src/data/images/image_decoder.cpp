#include "data/images/image_decoder.h"

#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which uses FILE

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "data/images/png_reader.h"

namespace lockstep {

namespace {

constexpr int64_t kPixelBytes = 4;
constexpr int64_t kMostPixels = int64_t{1} << 28;  // a header with more counts as damaged
// Interpolated chroma needs one more sample, i.e. two pixels, on each side.
constexpr int64_t kMargin = 2;

bool starts_with(std::span<const std::byte> file, std::string_view start) {
  return file.size() >= start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0;
}

uint8_t product_of_shares(int a, int b) {  // a * b / 255, rounded
  int t = a * b + 128;
  return static_cast<uint8_t>(((t >> 8) + t) >> 8);
}

// Converts in place, 4 bytes per pixel. Adobe's files store inverted ink and have Adobe's marker;
// files without the marker are taken as they are. Pillow does the same.
void cmyk_to_rgb(uint8_t* row, int64_t width, bool inverted) {
  for (int64_t x = 0; x < width; ++x, row += 4) {
    int key = inverted ? row[3] : 255 - row[3];  // the light that black ink leaves
    for (int c = 0; c < 3; ++c) {
      int ink = inverted ? 255 - row[c] : row[c];
      row[c] = static_cast<uint8_t>(std::clamp(key - product_of_shares(ink, key), 0, 255));
    }
  }
}

}  // namespace

// libjpeg reports errors through a call that must not return. It jumps to the setjmp of the running
// method, in which no object with a destructor may be alive.
struct ImageDecoder::Jpeg {
  jpeg_decompress_struct state{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
  bool cut_off = false;

  Jpeg() {
    state.err = jpeg_std_error(&errors);
    state.client_data = this;
    errors.error_exit = [](j_common_ptr common) {
      auto* self = static_cast<Jpeg*>(common->client_data);
      common->err->format_message(common, self->message);
      std::longjmp(self->jump, 1);
    };
    // Warnings are ignored like in other decoders, except that a file that ends early is damaged.
    errors.emit_message = [](j_common_ptr common, int level) {
      auto* self = static_cast<Jpeg*>(common->client_data);
      if (level < 0 && common->err->msg_code == JWRN_JPEG_EOF) self->cut_off = true;
    };
    errors.output_message = [](j_common_ptr) {};
    if (setjmp(jump) == 0) {
      jpeg_create_decompress(&state);
    }
  }
  ~Jpeg() { jpeg_destroy_decompress(&state); }

  bool read_header(std::span<const std::byte> file) {
    cut_off = false;
    if (setjmp(jump) != 0) return false;
    jpeg_abort_decompress(&state);
    jpeg_mem_src(&state, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&state, TRUE);
    return true;
  }

  // Starts the output. `box` is the wanted part of the scaled image on entry and the delivered part
  // on return.
  bool start(PixelBox& box) {
    if (setjmp(jump) != 0) return false;
    jpeg_start_decompress(&state);
    auto x = static_cast<JDIMENSION>(box.x);
    auto width = static_cast<JDIMENSION>(box.width);
    if (box.width < static_cast<int64_t>(state.output_width)) {
      jpeg_crop_scanline(&state, &x, &width);
    }
    box.x = x;
    box.width = state.output_width;
    if (box.y > 0) jpeg_skip_scanlines(&state, static_cast<JDIMENSION>(box.y));
    return true;
  }

  bool read_rows(uint8_t* to, int64_t stride, int64_t rows) {
    if (setjmp(jump) != 0) return false;
    constexpr int64_t kMostAtOnce = 16;
    JSAMPROW lines[kMostAtOnce];
    for (int64_t done = 0; done < rows;) {
      int64_t count = std::min(kMostAtOnce, rows - done);
      for (int64_t i = 0; i < count; ++i) lines[i] = to + (done + i) * stride;
      done += jpeg_read_scanlines(&state, lines, static_cast<JDIMENSION>(count));
    }
    return true;
  }

  void finish() {
    if (setjmp(jump) == 0) jpeg_abort_decompress(&state);
  }

  [[noreturn]] void fail(std::string_view what) {
    DataError error("{}", what);
    error.set_cause(message);
    finish();
    throw error;
  }
};

ImageDecoder::ImageDecoder() : jpeg_(std::make_unique<Jpeg>()) {}
ImageDecoder::~ImageDecoder() = default;

const ImageInfo& ImageDecoder::open(std::span<const std::byte> file) {
  file_ = file;
  info_ = {};
  if (starts_with(file, "\xff\xd8\xff")) {
    if (!jpeg_->read_header(file)) jpeg_->fail("a JPEG whose header cannot be read");
    const jpeg_decompress_struct& state = jpeg_->state;
    info_ = {.format = "JPEG",
             .width = state.image_width,
             .height = state.image_height,
             .channels = state.num_components,
             .bits = state.data_precision,
             .cmyk = state.num_components == 4,
             .progressive = state.progressive_mode != 0};
  } else if (starts_with(file, "\x89PNG\r\n\x1a\n")) {
    info_ = read_png_info(file);
  } else if (file.empty()) {
    throw DataError("an empty file");
  } else {
    throw DataError("neither a JPEG nor a PNG");
  }
  if (info_.width < 1 || info_.height < 1 || info_.width * info_.height > kMostPixels) {
    throw DataError("{} x {} pixels in its header", info_.width, info_.height);
  }
  return info_;
}

DecodedPixels ImageDecoder::decode(const PixelBox& region, int64_t reduction) {
  return info_.format == "PNG" ? decode_png() : decode_jpeg(region, reduction);
}

DecodedPixels ImageDecoder::decode_png() {
  pixels_.resize(static_cast<std::size_t>(info_.width * info_.height * kPixelBytes));
  read_png(file_, pixels_);
  return {.pixels = pixels_.data(),
          .stride = info_.width * kPixelBytes,
          .box = {0, 0, info_.width, info_.height},
          .reduction = 1};
}

DecodedPixels ImageDecoder::decode_jpeg(const PixelBox& region, int64_t reduction) {
  jpeg_decompress_struct& state = jpeg_->state;
  int64_t n = info_.cmyk ? 1 : reduction;
  state.out_color_space = info_.cmyk ? JCS_CMYK : JCS_EXT_RGBX;
  state.scale_num = 1;
  state.scale_denom = static_cast<unsigned>(n);
  state.dct_method = JDCT_ISLOW;  // with SIMD as fast as the less exact one
  state.do_fancy_upsampling = TRUE;
  int64_t width = (info_.width + n - 1) / n, height = (info_.height + n - 1) / n;
  PixelBox box;
  box.x = std::max<int64_t>(0, region.x / n - kMargin);
  box.y = std::max<int64_t>(0, region.y / n - kMargin);
  box.width = std::min(width, (region.x + region.width + n - 1) / n + kMargin) - box.x;
  box.height = std::min(height, (region.y + region.height + n - 1) / n + kMargin) - box.y;
  if (!jpeg_->start(box)) jpeg_->fail("a damaged JPEG");
  int64_t stride = box.width * kPixelBytes;
  pixels_.resize(static_cast<std::size_t>(stride * box.height));
  if (!jpeg_->read_rows(pixels_.data(), stride, box.height)) jpeg_->fail("a damaged JPEG");
  bool inverted = state.saw_Adobe_marker != 0;
  jpeg_->finish();
  if (jpeg_->cut_off) throw DataError("a JPEG that is cut off");
  if (info_.cmyk) {
    for (int64_t y = 0; y < box.height; ++y) {
      cmyk_to_rgb(pixels_.data() + y * stride, box.width, inverted);
    }
  }
  return {.pixels = pixels_.data(), .stride = stride, .box = box, .reduction = n};
}

}  // namespace lockstep
