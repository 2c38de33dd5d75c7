#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "edge/edge_layout.h"
#include "edge/edge_vocabulary.h"
#include "formats/crc32c.h"

namespace lockstep {
namespace {

// Sizes above this are of a damaged file; products of two of them do not overflow.
constexpr int64_t kLargestSize = int64_t{1} << 24;

template <class T>
bool parse_number(std::string_view text, T& out) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && at == end;
}

std::string_view as_text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

using HeaderKeys = std::map<std::string_view, std::string_view, std::less<>>;

// Fills an EdgeHeader from the lines of the header.
class HeaderReader {
 public:
  HeaderReader(const fs::path& path, const HeaderKeys& keys) : path_(path), keys_(keys) {}

  std::string_view text(std::string_view key) const {
    const auto found = keys_.find(key);
    if (found == keys_.end()) throw DataError("{}: its header has no {}", path_.string(), key);
    return found->second;
  }
  template <class T>
  T parsed(std::string_view key, std::string_view expected) const {
    T out{};
    if (!parse_number(text(key), out)) fail(key, expected);
    return out;
  }
  uint32_t checksum(std::string_view key) const {
    uint32_t out = 0;
    const std::string_view hex = text(key);
    const char* end = hex.data() + hex.size();
    if (std::from_chars(hex.data(), end, out, 16).ptr != end) fail(key, "a checksum");
    return out;
  }
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const {
    throw DataError("{}: {}: expected {}, found \"{}\"", path_.string(), key, expected, text(key));
  }

  void choice(std::string_view key, std::string& out,
              std::initializer_list<std::string_view> names) const {
    out = text(key);
    if (std::find(names.begin(), names.end(), out) != names.end()) return;
    fail(key, "one of " + join({names.begin(), names.end()}, ", "));
  }
  void size(std::string_view key, int64_t& out, int64_t least) const {
    const std::string expected = fmt::format("a number from {} to {}", least, kLargestSize);
    out = parsed<int64_t>(key, expected);
    if (out < least || out > kLargestSize) fail(key, expected);
  }
  void number(std::string_view key, double& out) const {
    out = parsed<double>(key, "a number above 0");
    if (!(out > 0) || !std::isfinite(out)) fail(key, "a number above 0");
  }
  void id(std::string_view key, int32_t& out) const {
    out = parsed<int32_t>(key, "an id, or -1 for none");
    if (out < -1) fail(key, "an id, or -1 for none");
  }
  void flag(std::string_view key, bool& out) const {
    std::string word;
    choice(key, word, {"yes", "no"});
    out = word == "yes";
  }
  template <class T>
  void ids(std::string_view key, std::vector<T>& out) const {
    out.clear();
    if (text(key) == "none") return;
    for (std::string_view left = text(key); !left.empty();) {
      const std::size_t end = std::min(left.find(','), left.size());
      T id = 0;
      if (!parse_number(left.substr(0, end), id) || id < kZeroToken) fail(key, "ids");
      out.push_back(id);
      left.remove_prefix(std::min(left.size(), end + 1));
    }
  }
  template <class T>
  void ids(std::string_view key, std::optional<std::vector<T>>& out) const {
    out.reset();
    if (text(key) != "default") ids(key, out.emplace());
  }
  void decoding(std::string_view key, BeamOptions& out) const {
    try {
      set_decoding_key(out, key, text(key));
    } catch (const ConfigError& error) {
      throw DataError("{}: {}", path_.string(), error.what());
    }
  }

 private:
  const fs::path& path_;
  const HeaderKeys& keys_;
};

[[noreturn]] void refuse_version(const fs::path& path, std::string_view version) {
  DataError error("{}: version {} of the format; this program reads version {}", path.string(),
                  version, kEdgeVersion);
  error.set_advice("export the model again, with lockstep of the release of this program");
  throw error;
}

// Splits the header into its lines and checks what stands around them.
HeaderKeys header_keys(const fs::path& path, std::string_view file) {
  if (!file.starts_with(kEdgeMagic)) {
    throw DataError("{}: not an edge model: expected \"{}{}\" in its first line", path.string(),
                    kEdgeMagic, kEdgeVersion);
  }
  const std::string_view first = file.substr(0, std::min<std::size_t>(file.find('\n'), 80));
  const std::string_view version = first.substr(kEdgeMagic.size());
  if (version != std::to_string(kEdgeVersion)) refuse_version(path, version);
  if (std::ssize(file) < kEdgeHeaderBytes) {
    throw DataError("{}: cut short: {} bytes, its header alone has {}", path.string(), file.size(),
                    kEdgeHeaderBytes);
  }
  HeaderKeys keys;
  const std::string_view header = file.substr(0, kEdgeHeaderBytes);
  for (std::size_t at = first.size() + 1; at < header.size();) {
    const std::size_t end = std::min(header.find('\n', at), header.size());
    const std::string_view line = header.substr(at, end - at);
    const std::size_t space = line.find(' ');
    if (line.empty() || space == std::string_view::npos) break;
    const std::string_view key = line.substr(0, space);
    keys[key] = line.substr(space + 1);
    if (key == "header_crc32c") {  // of all before it
      const uint32_t found = crc32c(header.substr(0, at));
      if (keys[key] == fmt::format("{:08x}", found)) return keys;
      throw DataError("{}: its header is damaged: checksum {}, expected {:08x}", path.string(),
                      keys[key], found);
    }
    at = end + 1;
  }
  throw DataError("{}: its header is damaged: it has no end", path.string());
}

DecodingShape shape_of(const EdgeHeader& header) {
  DecodingShape shape;
  shape.d_model = header.d_model;
  shape.heads = header.heads;
  shape.encoder_layers = header.encoder_layers;
  shape.decoder_layers = header.decoder_layers;
  shape.feed_forward = header.feed_forward;
  shape.pieces = header.pieces;
  shape.pre_norm = header.norm == "pre";
  shape.activation = header.activation;
  shape.norm_epsilon = header.norm_epsilon;
  shape.embedding_scale =
      header.embeddings == "scaled" ? std::sqrt(static_cast<float>(header.d_model)) : 1;
  if (header.start == "zero") shape.primer = {kZeroToken};
  if (header.special.primer) shape.primer = *header.special.primer;
  return shape;
}

WeightFormat format_of(const EdgeHeader& header) {
  if (header.precision == "int8") return WeightFormat::kInt8;
  return header.precision == "bf16" ? WeightFormat::kBf16 : WeightFormat::kFp32;
}

// Points the weights of a model into the file.
class Mapper {
 public:
  Mapper(const char* data, const EdgeHeader& header)
      : data_(data), format_(format_of(header)), width_(header.d_model) {}

  void norm(PackedNorm& norm) {
    norm.weight = take<float>(width_);
    norm.bias = take<float>(width_);
  }
  void linear(PackedLinear& linear, int64_t outputs, int64_t inputs) {
    PackedMatrix matrix;
    matrix.format = format_;
    matrix.outputs = outputs;
    matrix.inputs = inputs;
    matrix.panels = take<char>(matrix.panel_bytes());
    matrix.bias = take<float>(matrix.padded_outputs());
    if (format_ == WeightFormat::kInt8) {
      matrix.scale = take<float>(matrix.padded_outputs());
      matrix.offset = take<int32_t>(matrix.padded_outputs());
    }
    linear = PackedLinear(matrix);
  }
  int64_t bytes() const { return at_; }

 private:
  template <class T>
  const T* take(int64_t count) {
    const T* out = reinterpret_cast<const T*>(data_ + at_);
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    at_ += (bytes + kEdgeAlignment - 1) / kEdgeAlignment * kEdgeAlignment;
    return out;
  }

  const char* data_;
  WeightFormat format_;
  int64_t width_, at_ = 0;
};

// Returns the rows of the table that the encoder embeds with.
int64_t source_rows(const EdgeHeader& h) {
  if (h.encoder_rows > 0) return h.encoder_rows;
  return h.decoder_rows > 0 ? h.decoder_rows : h.pieces;
}

// Checks what the single keys do not.
void check_header(const fs::path& path, const EdgeHeader& h) {
  if (h.d_model % h.heads != 0 || h.d_model % 2 != 0) {
    throw DataError("{}: d_model: expected an even multiple of heads ({}), found {}", path.string(),
                    h.heads, h.d_model);
  }
  if (h.encoder_layers > 1024 || h.decoder_layers > 1024) {
    throw DataError("{}: {} and {} layers: expected at most 1024", path.string(), h.encoder_layers,
                    h.decoder_layers);
  }
  auto check = [&](int64_t id, int64_t rows) {
    if (id >= rows) throw DataError("{}: an id of {}, of {} pieces", path.string(), id, rows);
  };
  const SpecialIds& special = h.special;
  for (int32_t id : {special.pad, special.eos, special.bos, special.unk}) check(id, h.pieces);
  for (int32_t id : special.source_prefix) check(id, source_rows(h));
  if (special.primer) {
    for (int64_t id : *special.primer) check(id, h.decoder_rows > 0 ? h.decoder_rows : h.pieces);
  }
  if (special.never) {
    for (int32_t id : *special.never) check(id, h.pieces);
  }
  if (h.special.eos < 0 || h.special.bos < 0) {
    throw DataError("{}: the vocabulary has no </s> or no <s>", path.string());
  }
}

MappedFile map_file(const fs::path& folder, const char* name) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    throw DataError("{}: no such folder; expected one that lockstep export --format edge wrote",
                    folder.string());
  }
  if (!fs::exists(folder / name, failed)) {
    DataError error("{}: no such file", (folder / name).string());
    if (fs::exists(folder / "config.json", failed)) {
      error.set_cause("the folder holds a model for transformers, or a run");
    }
    error.set_advice("lockstep export RUN --format edge --out FOLDER");
    throw error;
  }
  return MappedFile(folder / name);
}

// Returns the contents of a file of the vocabulary, about which the header has lines that begin
// with `key`; "" where there is none.
std::string vocabulary_file(const fs::path& folder, const char* name, const std::string& key,
                            const HeaderReader& reader) {
  const int64_t bytes = reader.parsed<int64_t>(key + "_bytes", "a number");
  if (bytes == 0) return "";
  const MappedFile file = map_file(folder, name);
  if (std::ssize(as_text(file)) < bytes) {
    throw DataError("{}: cut short: {} bytes, expected {}", (folder / name).string(),
                    as_text(file).size(), bytes);
  }
  if (crc32c(as_text(file)) != reader.checksum(key + "_crc32c")) {
    throw DataError("{}: not the file that {} was written with, or damaged",
                    (folder / name).string(), kEdgeWeights);
  }
  return std::string(as_text(file));
}

// A network may have more rows than a published vocabulary has pieces.
void check_pieces(const std::string& name, int64_t pieces, int64_t rows, bool equal) {
  if (pieces == rows || (pieces < rows && !equal)) return;
  throw DataError("{}: {} pieces, the network has {}", name, pieces, rows);
}

}  // namespace

EdgeFolder::EdgeFolder(const fs::path& folder)
    : folder_(folder), weights_(map_file(folder, kEdgeWeights)) {
  const fs::path path = folder / kEdgeWeights;
  const std::string_view file = as_text(weights_);
  const HeaderKeys keys = header_keys(path, file);
  HeaderReader reader(path, keys);
  if (std::string host = std::endian::native == std::endian::little ? "little" : "big";
      reader.text("byte_order") != host) {
    throw DataError("{}: byte_order: expected {}, as this machine has, found {}", path.string(),
                    host, reader.text("byte_order"));
  }
  visit_edge_header(header_, reader);
  check_header(path, header_);
  model_.shape = shape_of(header_);
  model_.encoder.resize(static_cast<std::size_t>(header_.encoder_layers));
  model_.decoder.resize(static_cast<std::size_t>(header_.decoder_layers));
  Mapper mapper(file.data() + kEdgeHeaderBytes, header_);
  visit_edge_weights(model_, model_.shape, {header_.decoder_rows, header_.encoder_rows}, mapper);
  const int64_t expected = kEdgeHeaderBytes + mapper.bytes();
  if (std::ssize(file) != expected) {
    throw DataError("{}: {}: {} bytes, expected {} for such a network", path.string(),
                    std::ssize(file) < expected ? "cut short" : "too long", file.size(), expected);
  }
  weights_crc32c_ = reader.checksum("weights_crc32c");
  const auto table = std::make_shared<PositionTable>(
      header_.d_model, position_layout(header_.positions), header_.first_position);
  model_.positions = [table](int64_t count) { return table->rows(count); };
  subword_ = vocabulary_file(folder, kEdgeSubword, "subword", reader);
  target_ = vocabulary_file(folder, kEdgeTarget, "target", reader);
  pieces_ = vocabulary_file(folder, kEdgePieces, "pieces", reader);
}

TranslationTokenizer EdgeFolder::tokenizer() const {
  const std::string pieces_name = (folder_ / kEdgePieces).string();
  if (header_.vocabulary == "own") {
    TranslationTokenizer own(Subword::from_bytes(subword_, (folder_ / kEdgeSubword).string()));
    check_pieces((folder_ / kEdgeSubword).string(), own.vocab_size(), header_.pieces, true);
    return own;
  }
  PublishedVocabulary published = read_edge_pieces(pieces_, pieces_name, header_.vocabulary);
  published.source_model = subword_;
  published.target_model = target_.empty() ? subword_ : target_;
  TranslationTokenizer out(std::move(published));
  check_pieces(pieces_name, out.vocab_size(), header_.pieces, false);
  check_pieces(pieces_name, out.source_vocab_size(), source_rows(header_), false);
  return out;
}

std::vector<int32_t> EdgeFolder::source_prefix() const {
  return header_.start == "zero" ? std::vector<int32_t>{header_.special.bos}
                                 : header_.special.source_prefix;
}

void EdgeFolder::check_weights() const {
  const uint32_t found = crc32c(as_text(weights_).substr(kEdgeHeaderBytes));
  if (found == weights_crc32c_) return;
  throw DataError("{}: its weights are damaged: checksum {:08x}, expected {:08x}",
                  (folder_ / kEdgeWeights).string(), found, weights_crc32c_);
}

bool set_decoding_key(BeamOptions& options, std::string_view key, std::string_view value) {
  auto refuse = [&](std::string_view expected) {
    throw ConfigError("{}: expected {}, got \"{}\"", key, expected, value);
  };
  auto integer = [&](int64_t& out, int64_t least) {
    if (!parse_number(value, out) || out < least || out > kLargestSize) {
      refuse(fmt::format("a number from {} to {}", least, kLargestSize));
    }
  };
  auto number = [&](double& out) {
    if (!parse_number(value, out) || !(out >= 0) || !std::isfinite(out)) refuse("a number >= 0");
  };
  if (key == "beam_size") {
    integer(options.beam_size, 1);
  } else if (key == "length_penalty") {
    number(options.length_penalty);
  } else if (key == "max_length_factor") {
    number(options.max_length_factor);
  } else if (key == "max_length_extra") {
    integer(options.max_length_extra, 1);
  } else if (key == "min_length") {
    integer(options.min_length, 0);
  } else if (key == "batch_tokens") {
    integer(options.batch_tokens, 1);
  } else if (key == "stop") {
    if (value != "all_beams" && value != "first" && value != "bound" && value != "t2t" &&
        value != "full") {
      refuse("all_beams, first, bound, t2t or full");
    }
    options.stop = value;
  } else if (key == "length_norm") {
    if (value != "wu" && value != "tokens") refuse("wu or tokens");
    options.length_norm = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep
