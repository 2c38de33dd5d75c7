#include "data/labelled/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/lines/line_stream.h"

namespace lockstep {

namespace {

using RowJson = nlohmann::json;
using Json = nlohmann::ordered_json;  // keeps the order of keys, for messages

constexpr std::size_t kRowsInBlock = 256;

// Returns the library's message without its name and its line numbers.
std::string reason(const RowJson::exception& error) {
  const std::string_view text = error.what();
  const std::size_t at = text.find(": ");
  return std::string(at == std::string_view::npos ? text : text.substr(at + 2));
}

template <typename AnyJson>
AnyJson parse_object(std::string_view text, const std::string& place) {
  try {
    AnyJson json = AnyJson::parse(text);
    if (json.is_object()) return json;
  } catch (const RowJson::exception& error) {
    DataError problem("{}: not valid JSON", place);
    problem.set_cause(reason(error));
    throw problem;
  }
  throw DataError("{}: expected an object such as {{\"text\": ..., \"label\": ...}}", place);
}

// The members of an object within the object are named as Parquet's are: "translation.en".
template <typename AnyJson>
std::vector<std::string> keys_of(const AnyJson& object) {
  std::vector<std::string> out;
  for (const auto& item : object.items()) {
    out.push_back(item.key());
    if (!item.value().is_object()) continue;
    for (const auto& member : item.value().items()) {
      out.push_back(item.key() + "." + member.key());
    }
  }
  return out;
}

const RowJson& value_of(const RowJson& object, const std::string& key, const std::string& place) {
  auto found = object.find(key);
  if (found != object.end()) return *found;
  if (const std::size_t dot = key.find('.'); dot != std::string::npos) {
    const auto outer = object.find(key.substr(0, dot));
    if (outer != object.end() && outer->is_object()) {
      const auto member = outer->find(key.substr(dot + 1));
      if (member != outer->end()) return *member;
    }
  }
  throw DataError("{}: no \"{}\"{}", place, key, did_you_mean(key, keys_of(object)));
}

std::string text_of(const RowJson& object, const std::string& key, const std::string& place) {
  const RowJson& value = value_of(object, key, place);
  if (value.is_string()) return value.get<std::string>();
  throw DataError("{}: \"{}\": expected a text, got {}", place, key, value.type_name());
}

std::optional<std::string> label_of(const RowJson& object, const std::string& key,
                                    const std::string& place) {
  const RowJson& value = value_of(object, key, place);
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  if (value.is_primitive()) return value.dump();
  throw DataError("{}: \"{}\": expected a label, got {}", place, key, value.type_name());
}

TextRow row_of(const RowJson& object, const TextColumns& columns, std::string place) {
  TextRow row;
  row.text = text_of(object, columns.text, place);
  if (!columns.pair.empty()) row.pair = text_of(object, columns.pair, place);
  if (!columns.label.empty()) row.label = label_of(object, columns.label, place);
  row.place = std::move(place);
  return row;
}

class JsonLines : public TextSource {
 public:
  JsonLines(const fs::path& path, const TextSourceOptions& options)
      : path_(path.string()), lines_(path) {
    if (!advance()) throw DataError("{}: it is empty", path_);
    columns_ = choose_columns(keys_of(parse_object<Json>(line_, place(lines_.number()))),
                              options.columns, path_, options.need_label);
    pending_ = true;
  }

  std::optional<Block> next() override {
    std::vector<std::pair<int64_t, std::string>> lines;
    while (lines.size() < kRowsInBlock && (std::exchange(pending_, false) || advance())) {
      lines.emplace_back(lines_.number(), line_);
    }
    if (lines.empty()) return std::nullopt;
    return [this, lines = std::move(lines)] {
      std::vector<TextRow> rows;
      for (const auto& [number, line] : lines) {
        std::string at = place(number);
        rows.push_back(row_of(parse_object<RowJson>(line, at), columns_, at));
      }
      return rows;
    };
  }

  TextColumns columns() const override { return columns_; }

 private:
  bool advance() {
    do {
      if (!lines_.next(line_)) return false;
    } while (trim(line_).empty());
    return true;
  }
  std::string place(int64_t number) const { return fmt::format("{}:{}", path_, number); }

  std::string path_;
  LineStream lines_;
  std::string_view line_;
  TextColumns columns_;
  bool pending_ = false;  // line_ holds a row that next() has not returned yet
};

// A JSON list is read into memory as a whole.
class JsonList : public TextSource {
 public:
  JsonList(const fs::path& path, const TextSourceOptions& options) : path_(path.string()) {
    std::string text;
    LineStream lines(path);
    for (std::string_view line; lines.next(line); text += '\n') text += line;
    try {
      list_ = RowJson::parse(text);
      if (list_.empty() || !list_[0].is_object()) {
        throw DataError("{}: expected a list of objects", path_);
      }
      columns_ = choose_columns(keys_of(list_[0]), options.columns, path_, options.need_label);
    } catch (const RowJson::out_of_range& error) {  // a number that is too large
      DataError problem("{}: not valid JSON", path_);
      problem.set_cause(error.what());
      throw problem;
    } catch (const RowJson::parse_error& error) {
      const std::string_view before = std::string_view(text).substr(0, error.byte);
      DataError problem("{}:{}: not valid JSON", path_,
                        1 + std::count(before.begin(), before.end(), '\n'));
      problem.set_cause(reason(error));
      throw problem;
    }
  }

  std::optional<Block> next() override {
    if (at_ == list_.size()) return std::nullopt;
    const std::size_t begin = at_;
    at_ = std::min(at_ + kRowsInBlock, list_.size());
    return [this, begin, end = at_] {
      std::vector<TextRow> rows;
      for (std::size_t i = begin; i < end; ++i) {
        std::string place = fmt::format("{}: object {}", path_, i + 1);
        if (!list_[i].is_object()) throw DataError("{}: expected an object", place);
        rows.push_back(row_of(list_[i], columns_, std::move(place)));
      }
      return rows;
    };
  }

  TextColumns columns() const override { return columns_; }

 private:
  std::string path_;
  RowJson list_;
  std::size_t at_ = 0;
  TextColumns columns_;
};

bool starts_a_list(const fs::path& path) {
  LineStream lines(path);
  for (std::string_view line; lines.next(line);) {
    if (const std::string_view text = trim(line); !text.empty()) return text.front() == '[';
  }
  return false;
}

}  // namespace

std::unique_ptr<TextSource> open_json_text(const fs::path& path, const TextSourceOptions& options) {
  if (starts_a_list(path)) return std::make_unique<JsonList>(path, options);
  return std::make_unique<JsonLines>(path, options);
}

}  // namespace lockstep
