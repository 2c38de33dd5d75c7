#include "data/labelled/text_split_writer.h"

#include <algorithm>
#include <numeric>

namespace lockstep {

namespace {

// Returns the smallest length that at least this share of the texts does not exceed.
double percentile(const std::vector<int32_t>& sorted, int64_t percent) {
  const int64_t at = (std::ssize(sorted) * percent + 99) / 100;
  return sorted[static_cast<std::size_t>(std::max<int64_t>(at, 1) - 1)];
}

}  // namespace

TextSplitWriter::TextSplitWriter(const fs::path& folder, const std::string& name,
                                 const TextFileInfo& info)
    : writer_(folder / (name + ".texts"), info), kind_(info.label_kind), classes_(info.classes) {
  record_.name = name;
  record_.file = name + ".texts";
  record_.labelled = kind_ != LabelKind::kNone;
}

void TextSplitWriter::add(const TextExample& example, bool truncated) {
  writer_.add(example);
  lengths_.push_back(static_cast<int32_t>(example.ids.size()));
  if (kind_ == LabelKind::kClass) labels_.push_back(example.label);
  if (kind_ == LabelKind::kValue) values_.push_back(example.value);
  if (truncated) ++record_.truncated;
}

void TextSplitWriter::drop_labels() {
  writer_.drop_labels();
  kind_ = LabelKind::kNone;
  record_.labelled = false;
}

void TextSplitWriter::relabel(const std::vector<int32_t>& numbers, int32_t classes) {
  classes_ = classes;
  writer_.relabel(numbers, classes);
  for (int32_t& label : labels_) label = numbers[static_cast<std::size_t>(label)];
}

TextSplitRecord TextSplitWriter::finish() {
  writer_.finish();
  record_.examples = writer_.examples();
  record_.tokens = writer_.tokens();
  std::sort(lengths_.begin(), lengths_.end());
  if (!lengths_.empty()) {
    record_.lengths = {
        {"min", lengths_.front()},
        {"mean", static_cast<double>(record_.tokens) / static_cast<double>(record_.examples)},
        {"p50", percentile(lengths_, 50)},
        {"p90", percentile(lengths_, 90)},
        {"p99", percentile(lengths_, 99)},
        {"max", lengths_.back()}};
  }
  if (kind_ == LabelKind::kClass) {
    record_.class_counts.assign(static_cast<std::size_t>(classes_), 0);
    for (int32_t label : labels_) ++record_.class_counts[static_cast<std::size_t>(label)];
  }
  if (kind_ == LabelKind::kValue && !values_.empty()) {
    auto [least, most] = std::minmax_element(values_.begin(), values_.end());
    record_.values = {{"min", *least},
                      {"mean", std::accumulate(values_.begin(), values_.end(), 0.0) /
                                   static_cast<double>(values_.size())},
                      {"max", *most}};
  }
  return record_;
}

}  // namespace lockstep
