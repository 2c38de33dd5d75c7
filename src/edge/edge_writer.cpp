#include <fmt/format.h>

#include <functional>
#include <initializer_list>

#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "edge/edge_layout.h"
#include "edge/edge_vocabulary.h"
#include "formats/crc32c.h"

namespace lockstep {
namespace {

using Sink = std::function<void(std::string_view bytes)>;

// Gives every array of the weights to `sink`, each filled up to the alignment.
class WeightWriter {
 public:
  WeightWriter(int64_t width, Sink sink) : width_(width), sink_(std::move(sink)) {}

  void norm(const PackedNorm& norm) {
    put(norm.weight, 4 * width_);
    put(norm.bias, 4 * width_);
  }
  void linear(const PackedLinear& linear, int64_t, int64_t) {
    const PackedMatrix& m = linear.matrix();
    put(m.panels, m.panel_bytes());
    put(m.bias, 4 * m.padded_outputs());
    if (m.format != WeightFormat::kInt8) return;
    put(m.scale, 4 * m.padded_outputs());
    put(m.offset, 4 * m.padded_outputs());
  }
  int64_t bytes() const { return bytes_; }

 private:
  void put(const void* data, int64_t bytes) {
    const std::string filling(static_cast<std::size_t>(-bytes & (kEdgeAlignment - 1)), '\0');
    sink_({static_cast<const char*>(data), static_cast<std::size_t>(bytes)});
    sink_(filling);
    bytes_ += bytes + std::ssize(filling);
  }

  int64_t width_, bytes_ = 0;
  Sink sink_;
};

class HeaderWriter {
 public:
  template <class T>
  void line(std::string_view key, const T& value) {
    text += fmt::format("{} {}\n", key, value);
  }
  void choice(std::string_view key, const std::string& value,
              std::initializer_list<std::string_view>) {
    line(key, value);
  }
  void size(std::string_view key, int64_t value, int64_t) { line(key, value); }
  void number(std::string_view key, double value) { line(key, value); }
  void id(std::string_view key, int32_t value) { line(key, value); }
  void flag(std::string_view key, bool value) { line(key, value ? "yes" : "no"); }
  template <class T>
  void ids(std::string_view key, const std::vector<T>& values) {
    std::string text = values.empty() ? "none" : "";
    for (T id : values) text += fmt::format("{}{}", text.empty() ? "" : ",", id);
    line(key, text);
  }
  template <class T>
  void ids(std::string_view key, const std::optional<std::vector<T>>& values) {
    values ? ids(key, *values) : line(key, "default");
  }
  void decoding(std::string_view key, const BeamOptions& o) {
    if (key == "beam_size") line(key, o.beam_size);
    if (key == "length_penalty") line(key, o.length_penalty);
    if (key == "max_length_factor") line(key, o.max_length_factor);
    if (key == "max_length_extra") line(key, o.max_length_extra);
    if (key == "min_length") line(key, o.min_length);
    if (key == "batch_tokens") line(key, o.batch_tokens);
    if (key == "stop") line(key, o.stop);
    if (key == "length_norm") line(key, o.length_norm);
  }
  std::string text;
};

int64_t give_weights(const PackedTransformer& model, Sink sink) {
  WeightWriter writer(model.shape.d_model, std::move(sink));
  const EdgeRows rows{model.decoder_rows.outputs(), model.encoder_rows.outputs()};
  visit_edge_weights(model, model.shape, rows, writer);
  return writer.bytes();
}

}  // namespace

int64_t write_edge_folder(const fs::path& folder, const EdgeHeader& header,
                          const PackedTransformer& model, const TranslationTokenizer& vocabulary) {
  const std::vector<EdgeVocabularyFile> files = vocabulary_files(vocabulary);
  uint32_t crc = 0;
  const int64_t bytes =
      give_weights(model, [&](std::string_view part) { crc = crc32c(part, crc); });
  HeaderWriter out;
  out.text = fmt::format("{}{}\nbyte_order little\n", kEdgeMagic, kEdgeVersion);
  visit_edge_header(header, out);
  out.line("weights_crc32c", fmt::format("{:08x}", crc));
  int64_t written = kEdgeHeaderBytes + bytes;
  for (const EdgeVocabularyFile& file : files) {
    out.line(std::string(file.key) + "_bytes", file.contents.size());
    out.line(std::string(file.key) + "_crc32c", fmt::format("{:08x}", crc32c(file.contents)));
    written += std::ssize(file.contents);
  }
  out.line("header_crc32c", fmt::format("{:08x}", crc32c(out.text)));
  if (std::ssize(out.text) > kEdgeHeaderBytes) {
    throw ConfigError(
        "--format edge: the model names so many ids that its header takes {} bytes; "
        "expected at most {}",
        out.text.size(), kEdgeHeaderBytes);
  }
  out.text.resize(kEdgeHeaderBytes, '\n');
  for (const EdgeVocabularyFile& file : files) {
    if (!file.contents.empty()) write_file(folder / file.name, file.contents);
  }
  OutputFile file(folder / kEdgeWeights);
  file.write(out.text);
  give_weights(model, [&](std::string_view part) { file.write(part); });
  file.finish();
  return written;
}

}  // namespace lockstep
