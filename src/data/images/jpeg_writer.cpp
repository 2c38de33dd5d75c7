#include "data/images/jpeg_writer.h"

#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which uses FILE
#include <cstdlib>

#include <jpeglib.h>

#include <cstring>
#include <memory>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr int kFullColourQuality = 95;

// libjpeg's errors jump to the setjmp of compress(), in which no object with a destructor is alive.
struct Encoder {
  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
  unsigned char* out = nullptr;  // allocated by malloc
  unsigned long size = 0;

  Encoder() {
    state.err = jpeg_std_error(&errors);
    state.client_data = this;
    errors.error_exit = [](j_common_ptr common) {
      auto* self = static_cast<Encoder*>(common->client_data);
      common->err->format_message(common, self->message);
      std::longjmp(self->jump, 1);
    };
    jpeg_create_compress(&state);
  }
  ~Encoder() {
    jpeg_destroy_compress(&state);
    std::free(out);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  bool compress(const uint8_t* pixels, int64_t width, int64_t height, int quality, bool grey) {
    if (setjmp(jump) != 0) return false;
    jpeg_mem_dest(&state, &out, &size);
    state.image_width = static_cast<JDIMENSION>(width);
    state.image_height = static_cast<JDIMENSION>(height);
    state.input_components = grey ? 1 : 3;
    state.in_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&state);
    jpeg_set_quality(&state, quality, TRUE);
    if (!grey && quality >= kFullColourQuality) {
      state.comp_info[0].h_samp_factor = state.comp_info[0].v_samp_factor = 1;
    }
    state.optimize_coding = TRUE;
    jpeg_start_compress(&state, TRUE);
    int64_t stride = width * state.input_components;
    while (state.next_scanline < state.image_height) {
      auto* row = const_cast<JSAMPROW>(pixels + state.next_scanline * stride);
      jpeg_write_scanlines(&state, &row, 1);
    }
    jpeg_finish_compress(&state);
    return true;
  }
};

}  // namespace

std::vector<std::byte> encode_jpeg(const ByteImage& image, int quality, bool grey) {
  std::vector<uint8_t> one_channel;
  const uint8_t* pixels = image.pixels;
  if (grey) {
    for (int64_t i = 0; i < image.bytes(); i += 3) one_channel.push_back(image.pixels[i]);
    pixels = one_channel.data();
  }
  Encoder encoder;
  if (!encoder.compress(pixels, image.width, image.height, quality, grey)) {
    throw DataError("{} x {} pixels cannot be encoded as a JPEG: {}", image.width, image.height,
                    encoder.message);
  }
  std::vector<std::byte> out(encoder.size);
  std::memcpy(out.data(), encoder.out, encoder.size);
  return out;
}

}  // namespace lockstep
