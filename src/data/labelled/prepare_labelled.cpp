#include "data/labelled/prepare_labelled.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/ordered_parallel.h"
#include "base/random.h"
#include "base/usable_cores.h"
#include "data/labelled/text_labels.h"
#include "data/labelled/text_split_writer.h"
#include "data/lines/progress.h"
#include "data/tokenize/bert_tokenizer.h"

namespace lockstep {

namespace {

constexpr const char* kValidation = "validation";

// Rows that a worker turns into ids. The task keeps their source alive.
struct Task {
  std::shared_ptr<TextSource> source;
  TextSource::Block block;
};

struct EncodedText {
  std::size_t end = 0;  // end in Encoded::ids
  int32_t second_begin = 0;
  bool cut = false, empty = false;
};

// The result of a worker for a block, and the error that stopped it. Texts before the error are
// complete.
struct Encoded {
  std::vector<TextRow> rows;
  std::vector<EncodedText> texts;  // one per row, but fewer after a failure
  std::vector<int32_t> ids;
  bool are_files = false;
  std::exception_ptr failure;
};

Encoded encode(const Task& task, const BertTokenizer& tokenizer, bool pairs,
               std::size_t max_length) {
  Encoded out;
  try {
    out.rows = task.block();
    out.are_files = task.source->is_folder();
    WordPieceInput input;
    for (const TextRow& row : out.rows) {
      EncodedText text;
      text.cut = pairs ? tokenizer.encode(row.text, row.pair, input, max_length)
                       : tokenizer.encode(row.text, input, max_length);
      const auto second = std::find(input.type_ids.begin(), input.type_ids.end(), 1);
      text.second_begin = static_cast<int32_t>(second - input.type_ids.begin());
      text.empty =
          text.second_begin <= 2 || (pairs && std::distance(second, input.type_ids.end()) <= 1);
      out.ids.insert(out.ids.end(), input.ids.begin(), input.ids.end());
      text.end = out.ids.size();
      out.texts.push_back(text);
    }
  } catch (...) {
    out.failure = std::current_exception();
  }
  return out;
}

// Returns the blocks of the files of a split, one file after the other. A read error is returned as
// a block, so that errors are thrown in the order of the texts.
class BlockReader {
 public:
  using Open = std::function<std::shared_ptr<TextSource>(const fs::path&)>;
  BlockReader(std::vector<fs::path> files, Open open)
      : files_(std::move(files)), open_(std::move(open)) {}

  std::optional<Task> next() {
    if (failed_) return std::nullopt;
    try {
      while (true) {
        if (source_ != nullptr) {
          if (std::optional<TextSource::Block> block = source_->next()) {
            return Task{source_, std::move(*block)};
          }
        }
        if (at_ == files_.size()) return std::nullopt;
        source_ = open_(files_[at_++]);
      }
    } catch (...) {
      failed_ = true;
      return Task{source_, [failure = std::current_exception()]() -> std::vector<TextRow> {
                    std::rethrow_exception(failure);
                  }};
    }
  }

 private:
  std::vector<fs::path> files_;
  Open open_;
  std::shared_ptr<TextSource> source_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

class Preparation {
 public:
  explicit Preparation(const PrepareLabelledOptions& options)
      : options_(options),
        tokenizer_(BertTokenizer::load(options.vocabulary, options.lowercase)),
        columns_(options.columns),
        numbers_(options.classes) {
    if (options.regression) columns_.values = true;
  }

  TextManifest run(const std::vector<TextSplitInput>& inputs);

 private:
  LabelKind kind() const {
    if (!columns_.labels) return LabelKind::kNone;
    return options_.regression ? LabelKind::kValue : LabelKind::kClass;
  }
  TextFileInfo file_info() const {
    return {.vocab_size = static_cast<int32_t>(tokenizer_.identity().vocab_size),
            .vocab_sha256 = tokenizer_.identity().vocab_sha256,
            .label_kind = kind(),
            .classes = static_cast<int32_t>(numbers_.learning() ? 0 : numbers_.classes().size())};
  }
  std::shared_ptr<TextSource> open(const fs::path& file, bool need_label);
  void prepare_split(const TextSplitInput& input, bool first);
  void add_texts(const Encoded& block);
  void add_label(const TextRow& row, TextExample& example);
  void check_labels(TextSplitWriter& writer);
  void finish(TextSplitWriter& writer);
  void record_inputs(const TextSplitInput& input);

  const PrepareLabelledOptions& options_;
  BertTokenizer tokenizer_;
  ColumnOptions columns_;  // after the first file: the columns that it had
  ClassNumbers numbers_;
  TextManifest manifest_;
  bool opened_ = false;

  // The state of the current split.
  std::unique_ptr<TextSplitWriter> writer_, held_out_;
  bool first_ = false;
  int64_t texts_ = 0, unlabelled_ = 0;
  std::string unlabelled_place_;
  Digest files_hash_ = Digest::sha256();
  int64_t files_bytes_ = 0;
};

std::shared_ptr<TextSource> Preparation::open(const fs::path& file, bool need_label) {
  std::shared_ptr<TextSource> source = open_text_source(file, {.columns = columns_,
                                                               .header = options_.header,
                                                               .quotes = options_.quotes,
                                                               .classes = options_.classes,
                                                               .need_label = need_label});
  if (opened_) return source;
  opened_ = true;
  manifest_.columns = columns_.wanted = source->columns();
  if (options_.classes.empty() && kind() == LabelKind::kClass) {
    std::vector<std::string> names = source->class_names();
    const auto known = options_.class_names.find(manifest_.columns.label);
    if (names.empty() && known != options_.class_names.end()) names = known->second;
    numbers_ = ClassNumbers(std::move(names));
  }
  return source;
}

void Preparation::add_label(const TextRow& row, TextExample& example) {
  if (kind() == LabelKind::kNone) return;
  const bool value = kind() == LabelKind::kValue;
  const bool absent = !row.label || (value ? row.label->empty()
                                           : !numbers_.learning() && is_no_label(*row.label) &&
                                                 !numbers_.knows(*row.label));
  if (absent) {
    if (first_) throw DataError("{}: no label", row.place);
    if (unlabelled_++ == 0) unlabelled_place_ = row.place;
  } else if (value) {
    example.value = parse_value(*row.label, row.place);
  } else {
    example.label = numbers_.of(*row.label, row.place);
  }
}

void Preparation::add_texts(const Encoded& block) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < block.texts.size(); ++i) {
    const EncodedText& text = block.texts[i];
    const TextRow& row = block.rows[i];
    TextExample example{.ids = std::span(block.ids).subspan(begin, text.end - begin),
                        .second_begin = text.second_begin};
    begin = text.end;
    if (block.are_files) {
      const std::string name = fs::path(row.place).filename().string();
      files_hash_.update(name.c_str(), name.size() + 1);
      files_hash_.update(row.text.data(), row.text.size());
      files_bytes_ += std::ssize(row.text);
    }
    if (text.empty && options_.empty == EmptyTexts::kSkip) {
      writer_->skip();
      continue;
    }
    if (text.empty && options_.empty == EmptyTexts::kFail) {
      DataError error("{}: an empty text", row.place);
      error.set_advice(
          "--empty skip leaves such rows out and counts them, --empty keep takes them");
      throw error;
    }
    add_label(row, example);
    const bool held =
        held_out_ != nullptr && static_cast<double>(random_below(options_.seed, texts_, 1 << 30)) <
                                    options_.hold_out * (1 << 30);
    (held ? *held_out_ : *writer_).add(example, text.cut);
    ++texts_;
  }
  if (block.failure) std::rethrow_exception(block.failure);
}

void Preparation::check_labels(TextSplitWriter& writer) {
  if (unlabelled_ == 0) return;
  if (unlabelled_ != writer.examples()) {
    throw DataError("{}: no label, though other texts of the split have one", unlabelled_place_);
  }
  writer.drop_labels();
}

void Preparation::finish(TextSplitWriter& writer) {
  manifest_.splits.push_back(writer.finish());
  if (writer.examples() == 0) {
    throw DataError("{}: no texts in it", manifest_.splits.back().name);
  }
  manifest_.files.push_back(record_file(options_.out / manifest_.splits.back().file));
}

void Preparation::record_inputs(const TextSplitInput& input) {
  for (const fs::path& file : input.files) {
    if (fs::is_directory(file)) {
      manifest_.inputs.push_back({file.filename().string(), files_bytes_, files_hash_.hex()});
    } else {
      manifest_.inputs.push_back(record_file(file));
    }
  }
}

void Preparation::prepare_split(const TextSplitInput& input, bool first) {
  const bool need_label = first || !input.name.starts_with("test");
  first_ = first;
  texts_ = unlabelled_ = files_bytes_ = 0;
  files_hash_ = Digest::sha256();
  BlockReader reader(input.files, [&](const fs::path& file) { return open(file, need_label); });
  std::optional<Task> waiting = reader.next();  // opens the first file: sets columns, classes
  writer_ = std::make_unique<TextSplitWriter>(options_.out, input.name, file_info());
  if (first && options_.hold_out > 0) {
    held_out_ = std::make_unique<TextSplitWriter>(options_.out, kValidation, file_info());
  }
  const bool pairs = !manifest_.columns.pair.empty();
  Progress progress("preparing " + input.name, "texts");
  ordered_stream(
      options_.threads > 0 ? options_.threads : usable_threads(),
      [&] { return waiting ? std::exchange(waiting, std::nullopt) : reader.next(); },
      [&](const Task& task) {
        return encode(task, tokenizer_, pairs, static_cast<std::size_t>(options_.max_length));
      },
      [&](const Encoded& block) {
        add_texts(block);
        progress.update(texts_);
      });
  check_labels(*writer_);
  if (kind() == LabelKind::kClass && numbers_.learning()) {
    const std::vector<int32_t> order = numbers_.settle();
    const auto classes = static_cast<int32_t>(numbers_.classes().size());
    writer_->relabel(order, classes);
    if (held_out_) held_out_->relabel(order, classes);
  }
  finish(*writer_);
  if (held_out_) finish(*held_out_);
  held_out_.reset();
  record_inputs(input);
}

TextManifest Preparation::run(const std::vector<TextSplitInput>& inputs) {
  for (const TextSplitInput& input : inputs) prepare_split(input, &input == &inputs.front());
  manifest_.lockstep_version = LOCKSTEP_VERSION;
  manifest_.input = options_.input_name.empty()
                        ? options_.input.lexically_normal().filename().string()
                        : options_.input_name;
  manifest_.parameters = {{"empty", options_.empty == EmptyTexts::kFail   ? "fail"
                                    : options_.empty == EmptyTexts::kSkip ? "skip"
                                                                          : "keep"},
                          {"hold-out", fmt::format("{}", options_.hold_out)},
                          {"seed", std::to_string(options_.seed)}};
  manifest_.tokenizer = tokenizer_.identity();
  manifest_.max_length = options_.max_length;
  manifest_.label_kind = kind();
  manifest_.classes = numbers_.classes();
  for (const fs::path& file : tokenizer_.save(options_.out)) {
    manifest_.files.push_back(record_file(file));
  }
  write_text_manifest(options_.out, manifest_);
  return manifest_;
}

void check_inputs(const PrepareLabelledOptions& options,
                  const std::vector<TextSplitInput>& inputs) {
  if (options.max_length < 4 || options.max_length > 1 << 20) {
    throw ConfigError("--max-length {}: expected 4 or more, as [CLS] and [SEP] count",
                      options.max_length);
  }
  if (!(options.hold_out >= 0 && options.hold_out <= 0.5)) {
    throw ConfigError("--hold-out {}: expected a share from 0 to 0.5", options.hold_out);
  }
  for (const TextSplitInput& input : inputs) {
    if (options.hold_out > 0 && input.name == kValidation) {
      throw ConfigError("--hold-out: there is a validation split already ({})",
                        input.files[0].string());
    }
  }
  if (fs::exists(options.out / kManifestName)) {
    ConfigError error("{}: already holds prepared data", options.out.string());
    error.set_advice("another --out, or remove it first");
    throw error;
  }
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error) throw MachineError("{}: cannot be created: {}", options.out.string(), error.message());
}

}  // namespace

TextManifest prepare_labelled(const PrepareLabelledOptions& options) {
  const auto prepare = [&](const std::vector<TextSplitInput>& inputs) {
    check_inputs(options, inputs);
    return Preparation(options).run(inputs);
  };
  return options.splits.empty() ? TextInputs(options.input).read(prepare) : prepare(options.splits);
}

}  // namespace lockstep
