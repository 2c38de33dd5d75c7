#include "data/images/png_reader.h"

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"

namespace lockstep {

namespace {

// libpng reports errors through a call that must not return. It jumps to the setjmp of the running
// method, in which no object with a destructor may be alive.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : rest_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, [](png_structp, auto) {});
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) throw MachineError("no memory for a PNG reader");
    png_set_read_fn(png_, this, on_read);
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  bool read_header() {
    if (setjmp(jump_) != 0) return false;
    png_read_info(png_, info_);
    return true;
  }

  ImageInfo info() const {
    bool palette = png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE;
    return {.format = "PNG",
            .width = png_get_image_width(png_, info_),
            .height = png_get_image_height(png_, info_),
            .channels = palette ? 3 : png_get_channels(png_, info_),
            .bits = png_get_bit_depth(png_, info_)};
  }

  // Sets the output format to 4 bytes per pixel.
  bool set_output() {
    if (setjmp(jump_) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_filler(png_, 255, PNG_FILLER_AFTER);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(jump_) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  [[noreturn]] void fail(const char* what) const {
    DataError error("{}", what);
    error.set_cause(message_);
    throw error;
  }

 private:
  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<Reader*>(png_get_error_ptr(png));
    std::strncpy(self->message_, message, sizeof self->message_ - 1);
    std::longjmp(self->jump_, 1);
  }
  static void on_read(png_structp png, png_bytep to, std::size_t size) {
    auto* self = static_cast<Reader*>(png_get_io_ptr(png));
    if (size > self->rest_.size()) png_error(png, "it ends too early");
    std::memcpy(to, self->rest_.data(), size);
    self->rest_ = self->rest_.subspan(size);
  }

  std::span<const std::byte> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  char message_[256] = {};
};

}  // namespace

ImageInfo read_png_info(std::span<const std::byte> file) {
  Reader reader(file);
  if (!reader.read_header()) reader.fail("a PNG whose header cannot be read");
  return reader.info();
}

void read_png(std::span<const std::byte> file, std::span<uint8_t> pixels) {
  Reader reader(file);
  if (!reader.read_header() || !reader.set_output()) reader.fail("a damaged PNG");
  ImageInfo info = reader.info();
  std::vector<png_bytep> rows(static_cast<std::size_t>(info.height));
  for (std::size_t y = 0; y < rows.size(); ++y) {
    rows[y] = pixels.data() + y * static_cast<std::size_t>(info.width) * 4;
  }
  if (!reader.read_rows(rows.data())) reader.fail("a damaged PNG");
}

}  // namespace lockstep
