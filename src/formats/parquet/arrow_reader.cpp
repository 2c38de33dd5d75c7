// Implements formats/parquet_file.h with Arrow's C++ libraries, as the module
// liblockstep_parquet.so.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "formats/parquet_file.h"

namespace lockstep {

namespace {

using ArrayPointer = std::shared_ptr<arrow::Array>;

constexpr int64_t kRowsInBatch = 1024;

ParquetKind kind_of(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
      return ParquetKind::kText;
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
      return ParquetKind::kBinary;
    case arrow::Type::BOOL:
      return ParquetKind::kBool;
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE:
      return ParquetKind::kFloat;
    case arrow::Type::STRUCT: {
      const auto& parts = static_cast<const arrow::StructType&>(type);
      auto bytes = parts.GetFieldByName("bytes");
      const bool image = bytes != nullptr && kind_of(*bytes->type()) == ParquetKind::kBinary;
      return image ? ParquetKind::kImage : ParquetKind::kOther;
    }
    case arrow::Type::DICTIONARY:
      return kind_of(*static_cast<const arrow::DictionaryType&>(type).value_type());
    default:
      return arrow::is_integer(type.id()) ? ParquetKind::kInteger : ParquetKind::kOther;
  }
}

std::string decimal(double value) {
  char digits[32];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  return {digits, end};
}

template <typename Array, typename Convert>
void fill(const arrow::Array& array, ParquetCells& out, const Convert& convert) {
  const auto& typed = static_cast<const Array&>(array);
  for (int64_t i = 0; i < typed.length(); ++i) {
    if (typed.IsNull(i)) {
      out.values.emplace_back(std::nullopt);
    } else {
      out.values.emplace_back(convert(typed, i));
    }
  }
}

template <typename Array>
void fill_integers(const arrow::Array& array, ParquetCells& out) {
  fill<Array>(array, out, [](const Array& a, int64_t i) { return std::to_string(a.Value(i)); });
}

template <typename Array>
void fill_bytes(const arrow::Array& array, ParquetCells& out) {
  fill<Array>(array, out, [](const Array& a, int64_t i) { return std::string(a.GetView(i)); });
}

void fill_cells(const arrow::Array& array, ParquetCells& out);

void fill_images(const arrow::StructArray& array, ParquetCells& out) {
  fill_cells(*array.GetFieldByName("bytes"), out);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) out.values[out.values.size() - array.length() + i].reset();
  }
  ParquetCells paths;
  if (ArrayPointer path = array.GetFieldByName("path")) fill_cells(*path, paths);
  paths.values.resize(static_cast<std::size_t>(array.length()));
  for (auto& path : paths.values) out.paths.push_back(path.value_or(""));
}

void fill_dictionary(const arrow::DictionaryArray& array, ParquetCells& out) {
  ParquetCells words;
  fill_cells(*array.dictionary(), words);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (array.IsNull(i)) {
      out.values.emplace_back(std::nullopt);
      continue;
    }
    const int64_t word = array.GetValueIndex(i);
    if (word < 0 || word >= std::ssize(words.values)) {
      throw DataError("a row has entry {} of a dictionary of {}", word, words.values.size());
    }
    out.values.push_back(words.values[word]);
  }
}

void fill_cells(const arrow::Array& array, ParquetCells& out) {
  switch (array.type_id()) {
    case arrow::Type::STRING:
      return fill_bytes<arrow::StringArray>(array, out);
    case arrow::Type::LARGE_STRING:
      return fill_bytes<arrow::LargeStringArray>(array, out);
    case arrow::Type::BINARY:
      return fill_bytes<arrow::BinaryArray>(array, out);
    case arrow::Type::LARGE_BINARY:
      return fill_bytes<arrow::LargeBinaryArray>(array, out);
    case arrow::Type::INT8:
      return fill_integers<arrow::Int8Array>(array, out);
    case arrow::Type::INT16:
      return fill_integers<arrow::Int16Array>(array, out);
    case arrow::Type::INT32:
      return fill_integers<arrow::Int32Array>(array, out);
    case arrow::Type::INT64:
      return fill_integers<arrow::Int64Array>(array, out);
    case arrow::Type::UINT8:
      return fill_integers<arrow::UInt8Array>(array, out);
    case arrow::Type::UINT16:
      return fill_integers<arrow::UInt16Array>(array, out);
    case arrow::Type::UINT32:
      return fill_integers<arrow::UInt32Array>(array, out);
    case arrow::Type::UINT64:
      return fill_integers<arrow::UInt64Array>(array, out);
    case arrow::Type::FLOAT:
      return fill<arrow::FloatArray>(array, out, [](const auto& a, int64_t i) {
        return decimal(static_cast<double>(a.Value(i)));
      });
    case arrow::Type::DOUBLE:
      return fill<arrow::DoubleArray>(array, out,
                                      [](const auto& a, int64_t i) { return decimal(a.Value(i)); });
    case arrow::Type::BOOL:
      return fill<arrow::BooleanArray>(array, out, [](const auto& a, int64_t i) {
        return std::string(a.Value(i) ? "true" : "false");
      });
    case arrow::Type::STRUCT:
      return fill_images(static_cast<const arrow::StructArray&>(array), out);
    case arrow::Type::DICTIONARY:
      return fill_dictionary(static_cast<const arrow::DictionaryArray&>(array), out);
    default:
      throw DataError("a column of {} cannot be read", array.type()->ToString());
  }
}

class ArrowParquetFile : public ParquetFile {
 public:
  explicit ArrowParquetFile(const char* path) : path_(path) {
    std::shared_ptr<arrow::io::ReadableFile> file = check(arrow::io::ReadableFile::Open(path_));
    reader_ = check(parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
    reader_->set_batch_size(kRowsInBatch);
    reader_->set_use_threads(false);
    check(reader_->GetSchema(&schema_));
    for (const auto& field : schema_->fields()) add_columns(*field);
  }

  int64_t rows() const override { return reader_->parquet_reader()->metadata()->num_rows(); }
  const std::vector<ParquetColumn>& columns() const override { return columns_; }

  std::optional<std::string> metadata(const std::string& key) const override {
    if (!schema_->HasMetadata()) return std::nullopt;
    const int at = schema_->metadata()->FindKey(key);
    return at < 0 ? std::nullopt : std::optional(schema_->metadata()->value(at));
  }

  bool next(std::span<const int> columns, std::vector<ParquetCells>& cells) override {
    if (batches_ == nullptr) open_batches(columns);
    std::shared_ptr<arrow::RecordBatch> batch;
    check(batches_->ReadNext(&batch));
    if (batch == nullptr) return false;
    cells.assign(columns.size(), {});
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const ParquetColumn& column = columns_.at(columns[i]);
      if (column.kind == ParquetKind::kOther) {
        throw DataError("{}: column \"{}\" is of type {}, which cannot be read", path_, column.name,
                        column.type);
      }
      fill_cells(*array_of(*batch, places_.at(columns[i])), cells[i]);
    }
    return true;
  }

 private:
  // The field of the schema that a column is, or is a member of.
  struct Place {
    std::string field, member;  // no member: the field itself
  };

  // A struct that is no image has a column for each of its texts.
  void add_columns(const arrow::Field& field) {
    const ParquetKind kind = kind_of(*field.type());
    auto add = [&](const std::string& member, ParquetKind of, const arrow::DataType& type) {
      columns_.push_back(
          {field.name() + (member.empty() ? "" : "." + member), of, type.ToString()});
      places_.push_back({field.name(), member});
    };
    const std::size_t before = columns_.size();
    if (kind == ParquetKind::kOther && field.type()->id() == arrow::Type::STRUCT) {
      for (const auto& member : field.type()->fields()) {
        if (kind_of(*member->type()) == ParquetKind::kText) {
          add(member->name(), ParquetKind::kText, *member->type());
        }
      }
    }
    if (columns_.size() == before) add("", kind, *field.type());
  }

  ArrayPointer array_of(const arrow::RecordBatch& batch, const Place& place) const {
    const ArrayPointer whole = batch.GetColumnByName(place.field);  // null where two have the name
    if (whole == nullptr) {
      throw DataError("{}: more than one column is named \"{}\"", path_, place.field);
    }
    if (place.member.empty()) return whole;
    const int member =
        static_cast<const arrow::StructType&>(*whole->type()).GetFieldIndex(place.member);
    if (member < 0) {
      throw DataError("{}: more than one member of column \"{}\" is named \"{}\"", path_,
                      place.field, place.member);
    }
    return check(static_cast<const arrow::StructArray&>(*whole).GetFlattenedField(member));
  }

  // Parquet numbers leaf columns; a struct has several.
  void open_batches(std::span<const int> columns) {
    std::vector<int> leaves;
    const auto* parquet_schema = reader_->parquet_reader()->metadata()->schema();
    for (int leaf = 0; leaf < parquet_schema->num_columns(); ++leaf) {
      const std::string root = parquet_schema->GetColumnRoot(leaf)->name();
      for (int column : columns) {
        if (places_.at(column).field == root &&
            std::find(leaves.begin(), leaves.end(), leaf) == leaves.end()) {
          leaves.push_back(leaf);
        }
      }
    }
    std::vector<int> groups(static_cast<std::size_t>(reader_->num_row_groups()));
    for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
    batches_ = check(reader_->GetRecordBatchReader(groups, leaves));
  }

  void check(const arrow::Status& status) const {
    if (status.ok()) return;
    DataError error("{}: no whole Parquet file", path_);
    error.set_cause(status.message());
    throw error;
  }
  template <typename Value>
  Value check(arrow::Result<Value> result) const {
    check(result.status());
    return std::move(result).ValueUnsafe();
  }

  std::string path_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<ParquetColumn> columns_;
  std::vector<Place> places_;  // of the columns
  std::unique_ptr<arrow::RecordBatchReader> batches_;
};

}  // namespace

}  // namespace lockstep

extern "C" __attribute__((visibility("default"))) lockstep::ParquetFile* lockstep_open_parquet(
    const char* path) {
  try {
    return new lockstep::ArrowParquetFile(path);
  } catch (const parquet::ParquetException& problem) {
    lockstep::DataError error("{}: no whole Parquet file", path);
    error.set_cause(problem.what());
    throw error;
  }
}
