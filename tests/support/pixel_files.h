// Files of pixels as well-known sets are published, for tests.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::testing {

using namespace std::string_literals;

inline std::string pixel_number(uint32_t value, bool big_endian) {
  std::string out;
  for (int i = 0; i < 4; ++i) {
    out += static_cast<char>(value >> (8 * (big_endian ? 3 - i : i)) & 0xff);
  }
  return out;
}

// Returns an IDX file of bytes (http://yann.lecun.com/exdb/mnist).
inline std::string idx_file(std::initializer_list<uint32_t> sizes, std::string_view data) {
  std::string out = pixel_number(0x800 + static_cast<uint32_t>(sizes.size()), true);
  for (const uint32_t size : sizes) out += pixel_number(size, true);
  return out.append(data);
}

// Returns a file of NumPy (numpy.lib.format), version 1; `type` is as "|u1", `shape` as "(2, 3)".
inline std::string npy_file(const std::string& type, const std::string& shape,
                            std::string_view data) {
  std::string head = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((10 + head.size() + 1) % 64 != 0) head += ' ';
  head += '\n';
  const std::string size = pixel_number(static_cast<uint32_t>(head.size()), false).substr(0, 2);
  return ("\x93NUMPY\1\0"s + size + head).append(data);
}

// The pixels of one image of CIFAR: all of one colour.
inline std::string cifar_pixels(char red, char green, char blue) {
  return std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}

// Bytes in a pickle of Python 2.
inline std::string pickled_bytes(std::string_view text) {
  std::string out = text.size() < 256
                        ? "U"s + static_cast<char>(text.size())
                        : "T"s + pixel_number(static_cast<uint32_t>(text.size()), false);
  return out.append(text);
}

// Returns a batch of CIFAR as NumPy under Python 2 pickled it: a dictionary of "data", an array of
// bytes [images, 3072], and the labels under `key`.
inline std::string cifar_pickle(const std::vector<uint8_t>& labels, std::string_view pixels,
                                std::string_view key = "labels", std::string_view type = "u1") {
  std::string numbers = "](";
  for (const uint8_t label : labels) numbers += "K"s + static_cast<char>(label);
  return "\x80\x02}q\0("s + pickled_bytes(key) + numbers + "e" + pickled_bytes("data") +
         "cnumpy.core.multiarray\n_reconstruct\nq\1cnumpy\nndarray\nq\2K\0\x85U\1b\x87Rq\3(K\1K"s +
         static_cast<char>(labels.size()) + "M\0\x0c\x86"s + "cnumpy\ndtype\nq\4" +
         pickled_bytes(type) +
         "K\0K\1\x87Rq\5(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89"s +
         pickled_bytes(pixels) + "tbu.";
}

// Returns the file that names the classes.
inline std::string cifar_names(const std::vector<std::string>& names,
                               std::string_view key = "label_names") {
  std::string list = "](";
  for (const std::string& name : names) list += pickled_bytes(name);
  return "\x80\x02}("s + pickled_bytes(key) + list + "eu.";
}

}  // namespace lockstep::testing
