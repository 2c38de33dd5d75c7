// The folder of a model that lockstep-translate reads, and a line translated with it. The input is
// the header's lines up to a byte 0, the three files of the vocabulary, each after two bytes with
// its size, and the weights. Sizes and checksums are added here: what they keep out is not what is
// looked for.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "edge/edge_translator.h"
#include "formats/crc32c.h"
#include "fuzz.h"

namespace {

using namespace lockstep;

// In memory, as long as the process lives.
const fs::path& folder() {
  static const fs::path made = [] {
    std::string name = "/dev/shm/lockstep-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    return fs::path(name);
  }();
  static const struct Remover {
    ~Remover() { fs::remove_all(made); }
  } remover;
  return made;
}

std::string_view take_sized(std::string_view& rest) {
  if (rest.size() < 2) return "";
  const auto low = static_cast<unsigned char>(rest[0]), high = static_cast<unsigned char>(rest[1]);
  const std::size_t size = std::min<std::size_t>(low + 256U * high, rest.size() - 2);
  const std::string_view out = rest.substr(2, size);
  rest.remove_prefix(2 + size);
  return out;
}

void write(const char* name, std::string_view bytes) {
  std::ofstream out(folder() / name, std::ios::binary);
  out << bytes;
}

}  // namespace

FUZZ(bytes) {
  std::string header = fmt::format("lockstep-edge {}\nbyte_order little\n", kEdgeVersion);
  header += take_part(bytes);
  const auto add = [&](const char* key, const char* name) {
    const std::string_view contents = take_sized(bytes);
    write(name, contents);
    header +=
        fmt::format("{}_bytes {}\n{}_crc32c {:08x}\n", key, contents.size(), key, crc32c(contents));
  };
  add("subword", kEdgeSubword);
  add("target", kEdgeTarget);
  add("pieces", kEdgePieces);
  header += fmt::format("weights_crc32c {:08x}\n", crc32c(bytes));
  header += fmt::format("header_crc32c {:08x}\n", crc32c(header));
  if (header.size() > 16384) return;
  header.resize(16384);
  write(kEdgeWeights, header + std::string(bytes));
  const EdgeTranslator model(folder(), {.threads = 1,
                                        .settings = {"beam_size=2", "max_length_factor=1",
                                                     "max_length_extra=2", "batch_tokens=100"}});
  model.folder().check_weights();
  use(model.translate({"ab c"}));
}
