#include "data/parallel/wmt_corpus.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/ordered_parallel.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "data/fetch/archive_entries.h"
#include "data/lines/progress.h"
#include "data/parallel/pair_buckets.h"
#include "data/parallel/pair_cleaner.h"
#include "data/parallel/paired_lines.h"
#include "data/parallel/sgm.h"
#include "data/parallel/split_writer.h"

namespace lockstep {

namespace {

constexpr int64_t kMostBuckets = 512;          // limited by open files
constexpr int64_t kBytesOfBucket = 4'000'000;  // of text, approximately
constexpr int64_t kTextOfArchive = 4;  // bytes of text per byte of an archive, approximately

class WmtPreparation {
 public:
  explicit WmtPreparation(const WmtOptions& options)
      : options_(options), out_(options.corpus.out), work_(out_ / "work") {
    std::vector<WmtArchive> archives = wmt16_training_archives();
    archives.push_back(wmt13_test_archive());
    archives.push_back(wmt14_test_archive(options.full_test));
    archives_ = with_checks(std::move(archives), options.fetch);
    start_manifest();
  }

  PreparedCorpus run() {
    const auto start = std::chrono::steady_clock::now();
    if (std::optional<Manifest> there = find_finished()) {
      return {std::move(*there), true, seconds_since(start)};
    }
    refuse_other_work();
    open_corpus_folder(out_, manifest_);
    fetch();
    stage("pairs", [&](const fs::path& folder) { clean(folder); });
    stage("words", [&](const fs::path& folder) { count_words_of_train(folder); });
    stage("subwords", [&](const fs::path& folder) { learn(folder); });
    encode();
    finish_corpus_folder(out_, manifest_);
    fs::remove_all(work_);
    return {manifest_, false, seconds_since(start)};
  }

 private:
  void start_manifest() {
    const CorpusOptions& corpus = options_.corpus;
    auto choice = [](bool yes) { return yes ? std::string("yes") : std::string("no"); };
    manifest_.lockstep_version = LOCKSTEP_VERSION;
    manifest_.command = "wmt16-en-de";
    manifest_.seed = corpus.split.seed;
    manifest_.source_language = corpus.source_language;
    manifest_.target_language = corpus.target_language;
    manifest_.parameters = {
        {"min-words", std::to_string(corpus.cleaning.min_words)},
        {"max-words", std::to_string(corpus.cleaning.max_words)},
        {"ratio", fmt::format("{:g}", corpus.cleaning.max_ratio)},
        {"vocab", std::to_string(corpus.subword.vocab_size)},
        {"character-coverage", fmt::format("{}", corpus.subword.character_coverage)},
        {"drop-repeated", choice(options_.drop_repeated)},
        {"check-language", choice(options_.check_language)},
        {"drop-bars", choice(options_.drop_bars)},
        {"test", options_.full_test ? "full" : "filtered"}};
  }

  // Returns the corpus if it is already finished; its archives need not exist.
  std::optional<Manifest> find_finished() {
    if (!fs::exists(out_ / kManifestName)) return std::nullopt;
    Manifest wanted = manifest_;
    wanted.inputs = read_manifest(out_).inputs;
    std::optional<Manifest> there = open_corpus_folder(out_, wanted);
    fs::remove_all(work_);
    return there;
  }

  // Checks, before anything is fetched, that work already begun was begun with these options.
  void refuse_other_work() const {
    for (const char* name : {"subwords", "words", "pairs"}) {
      if (!fs::exists(work_ / name / kManifestName)) continue;
      Manifest there = read_manifest(work_ / name);
      Manifest wanted = manifest_;
      wanted.inputs = manifest_.inputs.empty() ? there.inputs : manifest_.inputs;
      if (there.same_origin(wanted)) return;
      ConfigError error("{} holds an unfinished corpus, begun in another way", out_.string());
      error.set_cause(describe_differences(there, wanted));
      error.set_advice(
          fmt::format("the options of then to go on; or remove {} to begin anew", work_.string()));
      throw error;
    }
  }

  void fetch() {
    log_info("archives: {} of them", archives_.size());
    paths_ = fetch_archives(archives_, out_ / "cache", options_.fetch);
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      FileRecord record = record_file(paths_[i]);
      record.name = archives_[i].name;
      manifest_.inputs.push_back(record);
    }
    refuse_other_work();
  }

  // Does `work` in a folder of its own, unless it was done before. The manifest after the stage is
  // written there last, so a folder that has one is complete.
  template <typename Work>
  void stage(const std::string& name, const Work& work) {
    fs::path folder = work_ / name;
    if (fs::exists(folder / kManifestName)) {
      manifest_ = read_manifest(folder);
      log_info("{}: done before", name);
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw MachineError("{}: cannot be created: {}", folder.string(), error.message());
    work(folder);
    sync_folder(folder);
    write_manifest(folder, manifest_);
    log_info("{}: done in {:.1f} s", name, seconds_since(start));
  }

  // The number depends only on the archives: bounding the text of each bucket bounds the memory.
  int64_t buckets() const {
    int64_t bytes = 0;
    for (std::size_t i = 0; i < wmt16_training_archives().size(); ++i) {
      bytes += manifest_.inputs[i].bytes;
    }
    auto wanted = static_cast<uint64_t>(kTextOfArchive * bytes / kBytesOfBucket);
    return std::min(kMostBuckets, static_cast<int64_t>(std::bit_ceil(wanted)));
  }

  void clean(const fs::path& folder) {
    CleanerOptions cleaning{.rules = options_.corpus.cleaning,
                            .source_language = options_.corpus.source_language,
                            .target_language = options_.corpus.target_language,
                            .check_language = options_.check_language,
                            .drop_bars = options_.drop_bars};
    int64_t total = 0;
    for (const WmtArchive& archive : wmt16_training_archives()) total += archive.pairs;
    BucketWriter writer(folder, buckets());
    Progress progress("cleaning", "pairs", total);
    for (std::size_t part = 0; part < wmt16_training_archives().size(); ++part) {
      clean_archive(part, cleaning, writer, progress);
    }
    writer.finish();
  }

  struct Cleaned {
    BucketedPairs pairs;
    DropCounts dropped;
    int64_t read = 0;
  };

  void clean_archive(std::size_t part, const CleanerOptions& cleaning, BucketWriter& writer,
                     Progress& progress) {
    const WmtArchive& archive = archives_[part];
    PairedLines lines(paths_[part], archive.source_entry, archive.target_entry,
                      !archive.check.has_checksum());
    uint64_t seed = options_.corpus.split.seed;
    ordered_stream(
        usable_threads(), [&] { return lines.next(); },
        [&](const PairedLines::Block& block) {
          Cleaned out{.pairs = BucketedPairs(buckets()), .read = block.source.size()};
          PairCleaner cleaner(cleaning);
          for (int64_t i = 0; i < block.source.size(); ++i) {
            std::optional<PairView> pair =
                cleaner.clean(block.source[i], block.target[i], out.dropped);
            if (!pair) continue;
            uint64_t key = options_.drop_repeated
                               ? key_of_text(*pair, seed)
                               : key_of_place(part, block.source.first + i, seed);
            out.pairs.add(key, *pair);
          }
          return out;
        },
        [&](const Cleaned& cleaned) {
          writer.write(cleaned.pairs);
          for (const auto& [reason, count] : cleaned.dropped) manifest_.dropped[reason] += count;
          progress.update(manifest_.pairs_read += cleaned.read);
        });
  }

  Bucket bucket(int64_t number) const {
    return Bucket(work_ / "pairs", number, options_.drop_repeated);
  }

  void count_words_of_train(const fs::path& folder) {
    struct Counted {
      WordCounts words;
      int64_t repeated;
    };
    WordCounts counts;
    int64_t repeated = 0;
    int64_t done = 0;
    Progress progress("counting words", "buckets", buckets());
    ordered_parallel(
        buckets(), usable_threads(),
        [&](int64_t number) {
          Bucket pairs = bucket(number);
          Counted out{WordCounts(), pairs.repeated()};
          for (const PairView& pair : pairs.pairs()) {
            out.words.add_line(pair.source);
            out.words.add_line(pair.target);
          }
          return out;
        },
        [&](const Counted& counted) {
          counts.add(counted.words);
          repeated += counted.repeated;
          progress.update(++done);
        });
    if (counts.size() == 0) {
      throw DataError("no sentence pair is left to train on, of {} that were read",
                      with_commas(manifest_.pairs_read));
    }
    if (repeated > 0) manifest_.dropped["repeated pair"] = repeated;
    write_word_counts(folder / "words.txt", counts);
  }

  void learn(const fs::path& folder) {
    WordCounts counts = read_word_counts(work_ / "words" / "words.txt");
    log_info("subwords: learning {} from {} distinct words",
             with_commas(options_.corpus.subword.vocab_size), with_commas(counts.size()));
    write_file(folder / "subword.model", learn_subwords(options_.corpus.subword, counts));
  }

  SentencePairs read_held_out(std::size_t part) const {
    const WmtArchive& archive = archives_[part];
    auto segments = [&](const std::string& entry) {
      return read_sgm(read_archived_file(paths_[part], entry),
                      paths_[part].string() + ": " + entry);
    };
    std::vector<SgmSegment> source = segments(archive.source_entry);
    std::vector<SgmSegment> target = segments(archive.target_entry);
    if (source.size() != target.size()) {
      throw DataError("{}: {} has {} segments, {} has {}; expected as many in both",
                      paths_[part].string(), archive.source_entry, source.size(),
                      archive.target_entry, target.size());
    }
    SentencePairs out;
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i].place != target[i].place) {
        throw DataError("{}: segment {} is {} in {} and {} in {}", paths_[part].string(), i + 1,
                        source[i].place, archive.source_entry, target[i].place,
                        archive.target_entry);
      }
      out.add(source[i].text, target[i].text);
    }
    return out;
  }

  void encode();
  void encode_train(const Subword& subword, const PairEncoder& encoder);
  void encode_held_out(const std::string& name, const SentencePairs& pairs,
                       const PairEncoder& encoder, const Subword& subword);
  SplitWriter::Place place(const std::string& name) const {
    return {out_, name, options_.corpus.source_language, options_.corpus.target_language};
  }

  const WmtOptions& options_;
  fs::path out_, work_;
  std::vector<WmtArchive> archives_;  // first the training archives, then dev, then test
  std::vector<fs::path> paths_;
  Manifest manifest_;
};

void WmtPreparation::encode() {
  const auto start = std::chrono::steady_clock::now();
  Subword subword = Subword::load(work_ / "subwords" / "subword.model");
  std::size_t parts = wmt16_training_archives().size();
  SentencePairs dev = read_held_out(parts);
  SentencePairs test = read_held_out(parts + 1);
  write_file(out_ / "subword.model", subword.serialized());
  write_file(out_ / "subword.vocab", subword.vocabulary_text());
  manifest_.vocab_size = subword.vocab_size();
  {
    const WordEncoder words(subword, read_word_counts(work_ / "words" / "words.txt"));
    const PairEncoder encoder = pair_encoder(words);
    log_info("tokens: {:.1f} s for the table of words", seconds_since(start));
    encode_train(subword, encoder);
    encode_held_out("dev", dev, encoder, subword);
    encode_held_out("test", test, encoder, subword);
  }
  std::vector<std::string> names{"subword.model", "subword.vocab"};
  for (const char* split : {"train", "dev", "test"}) {
    for (const std::string& ending : {std::string("tokens"), options_.corpus.source_language,
                                      options_.corpus.target_language}) {
      names.push_back(fmt::format("{}.{}", split, ending));
    }
  }
  ordered_parallel(
      static_cast<int64_t>(names.size()), usable_threads(),
      [&](int64_t i) { return record_file(out_ / names[static_cast<std::size_t>(i)]); },
      [&](FileRecord record) { manifest_.files.push_back(std::move(record)); });
  log_info("tokens: done in {:.1f} s", seconds_since(start));
}

void WmtPreparation::encode_train(const Subword& subword, const PairEncoder& encoder) {
  SplitWriter writer(place("train"), {subword.vocab_size(), subword.sha256()});
  Progress progress("encoding train", "buckets", buckets());
  int64_t done = 0;
  ordered_parallel(
      buckets(), usable_threads(),
      [&](int64_t number) {
        Bucket pairs = bucket(number);
        EncodedPairs out;
        for (const PairView& pair : pairs.pairs()) out.add(pair, encoder);
        return out;
      },
      [&](const EncodedPairs& encoded) {
        writer.write(encoded, manifest_.dropped);
        progress.update(++done);
      });
  manifest_.splits.push_back(writer.finish());
}

void WmtPreparation::encode_held_out(const std::string& name, const SentencePairs& pairs,
                                     const PairEncoder& encoder, const Subword& subword) {
  SplitWriter writer(place(name), {subword.vocab_size(), subword.sha256()});
  EncodedPairs encoded;
  for (int64_t i = 0; i < pairs.size(); ++i) encoded.add(pairs[i], encoder);
  writer.write(encoded, manifest_.dropped);
  manifest_.pairs_read += pairs.size();
  manifest_.splits.push_back(writer.finish());
}

}  // namespace

PreparedCorpus prepare_wmt16(const WmtOptions& options) {
  check_options(options.corpus);
  return WmtPreparation(options).run();
}

}  // namespace lockstep
