#include "data/parallel/corpus_writer.h"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/ordered_parallel.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "data/lines/progress.h"
#include "data/parallel/split_writer.h"

namespace lockstep {

namespace {

constexpr const char* kUnfinished = ".unfinished";  // exists while a corpus is being written
constexpr int64_t kPairsInBlock = 4096;             // pairs that a thread encodes at a time
constexpr int64_t kCountingBlock = 1 << 17;         // larger, because counts are merged

std::vector<std::string> names_of_files(const Manifest& wanted) {
  std::vector<std::string> out{"subword.model", "subword.vocab"};
  for (const char* split : {"train", "dev", "test"}) {
    out.push_back(fmt::format("{}.tokens", split));
    out.push_back(fmt::format("{}.{}", split, wanted.source_language));
    out.push_back(fmt::format("{}.{}", split, wanted.target_language));
  }
  return out;
}

PairView pair_of(const SplitPairs& split, int64_t i) {
  return (*split.pairs)[split.order[static_cast<std::size_t>(i)]];
}

int64_t size_of(const SplitPairs& split) { return static_cast<int64_t>(split.order.size()); }

int64_t blocks_of(int64_t pairs, int64_t block) { return (pairs + block - 1) / block; }

WordCounts count_all_words(const SplitPairs& train) {
  WordCounts counts;
  int64_t pairs = size_of(train);
  ordered_parallel(
      blocks_of(pairs, kCountingBlock), usable_threads(),
      [&](int64_t block) {
        WordCounts some;
        int64_t end = std::min(pairs, (block + 1) * kCountingBlock);
        for (int64_t i = block * kCountingBlock; i < end; ++i) {
          some.add_line(pair_of(train, i).source);
          some.add_line(pair_of(train, i).target);
        }
        return some;
      },
      [&](const WordCounts& some) { counts.add(some); });
  return counts;
}

// A vocabulary that has been written: how it encodes, and its files.
struct CorpusVocabulary {
  TokenFileInfo info;
  PairEncoder encoder;
  std::vector<std::string> files;
  std::shared_ptr<const void> owner;  // of what the encoder refers to
};

CorpusVocabulary learn_vocabulary(const CorpusOptions& options, const SplitPairs& train) {
  log_info("learning {} subwords on {} pairs", with_commas(options.subword.vocab_size),
           with_commas(size_of(train)));
  const WordCounts counts = count_all_words(train);
  const std::string model = learn_subwords(options.subword, counts);
  struct Words {
    Subword subword;
    WordEncoder encoder;
    Words(const std::string& model, const WordCounts& counts)
        : subword(Subword::from_bytes(model)), encoder(subword, counts) {}
  };
  const auto words = std::make_shared<const Words>(model, counts);
  write_file(options.out / "subword.model", model);
  write_file(options.out / "subword.vocab", words->subword.vocabulary_text());
  return {{words->subword.vocab_size(), words->subword.sha256()},
          pair_encoder(words->encoder),
          {"subword.model", "subword.vocab"},
          words};
}

// Copies the files of the vocabulary that the options name.
CorpusVocabulary take_vocabulary(const CorpusOptions& options) {
  const auto tokenizer =
      std::make_shared<const TranslationTokenizer>(TranslationTokenizer::load(options.vocabulary));
  CorpusVocabulary out{
      {std::max(tokenizer->source_vocab_size(), tokenizer->vocab_size()), tokenizer->identity()},
      pair_encoder(*tokenizer),
      {},
      tokenizer};
  for (const auto& [name, contents] : tokenizer->files()) {
    write_file(options.out / name, contents);
    out.files.push_back(name);
  }
  log_info("the vocabulary of {}: {} pieces", options.vocabulary_name,
           with_commas(out.info.vocab_size));
  return out;
}

SplitRecord write_split(const CorpusOptions& options, const SplitPairs& split,
                        const CorpusVocabulary& vocabulary, DropCounts& dropped) {
  SplitWriter writer({options.out, split.name, options.source_language, options.target_language},
                     vocabulary.info);
  int64_t pairs = size_of(split);
  Progress progress("encoding " + split.name, "pairs", pairs);
  int64_t done = 0;
  ordered_parallel(
      blocks_of(pairs, kPairsInBlock), usable_threads(),
      [&](int64_t block) {
        EncodedPairs out;
        int64_t end = std::min(pairs, (block + 1) * kPairsInBlock);
        for (int64_t i = block * kPairsInBlock; i < end; ++i)
          out.add(pair_of(split, i), vocabulary.encoder);
        return out;
      },
      [&](const EncodedPairs& encoded) {
        writer.write(encoded, dropped);
        progress.update(done += kPairsInBlock);
      });
  SplitRecord record = writer.finish();
  record.seen_in_train = split.seen_in_train;
  return record;
}

}  // namespace

std::string describe_differences(const Manifest& there, const Manifest& here) {
  std::vector<std::string> out;
  auto compare = [&](const std::string& name, const std::string& a, const std::string& b) {
    if (a != b) out.push_back(fmt::format("{} is \"{}\" there, \"{}\" here", name, a, b));
  };
  compare("the command", there.command, here.command);
  compare("the version of lockstep", there.lockstep_version, here.lockstep_version);
  compare("seed", std::to_string(there.seed), std::to_string(here.seed));
  compare("source-language", there.source_language, here.source_language);
  compare("target-language", there.target_language, here.target_language);
  std::map<std::string, std::pair<std::string, std::string>> parameters;
  for (const auto& [name, value] : there.parameters) parameters[name].first = value;
  for (const auto& [name, value] : here.parameters) parameters[name].second = value;
  for (const auto& [name, values] : parameters) compare(name, values.first, values.second);
  if (out.empty()) out.push_back("the input files are others");
  return join(out, ", ");
}

std::optional<Manifest> open_corpus_folder(const fs::path& out, const Manifest& wanted) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw MachineError("{}: cannot be created: {}", out.string(), error.message());
  if (fs::exists(out / kManifestName)) {
    Manifest there = read_manifest(out);
    if (there.same_origin(wanted)) return there;
    ConfigError refusal("{} already holds a prepared corpus, made in another way", out.string());
    refusal.set_cause(describe_differences(there, wanted));
    refusal.set_advice("another --out, or remove the folder first");
    throw refusal;
  }
  if (!fs::exists(out / kUnfinished)) {
    for (const std::string& name : names_of_files(wanted)) {
      if (!fs::exists(out / name)) continue;
      ConfigError refusal("{} exists and would be overwritten", (out / name).string());
      refusal.set_cause("it was not written by an earlier lockstep prepare");
      refusal.set_advice("another --out");
      throw refusal;
    }
    write_file(out / kUnfinished, "");
  }
  return std::nullopt;
}

void finish_corpus_folder(const fs::path& out, const Manifest& manifest) {
  sync_folder(out);
  write_manifest(out, manifest);
  fs::remove(out / kUnfinished);
}

void write_corpus(const CorpusOptions& options, const std::vector<SplitPairs>& splits,
                  Manifest& manifest) {
  const SplitPairs& train = splits.front();
  if (train.order.empty()) {
    throw DataError("no sentence pair is left to train on, of {} that were read",
                    with_commas(manifest.pairs_read));
  }
  const CorpusVocabulary vocabulary =
      options.vocabulary.empty() ? learn_vocabulary(options, train) : take_vocabulary(options);
  manifest.vocab_size = vocabulary.info.vocab_size;
  std::vector<std::string> names = vocabulary.files;
  for (const SplitPairs& split : splits) {
    manifest.splits.push_back(write_split(options, split, vocabulary, manifest.dropped));
    for (const std::string& ending :
         {std::string("tokens"), options.source_language, options.target_language}) {
      names.push_back(split.name + "." + ending);
    }
  }
  for (const std::string& name : names) manifest.files.push_back(record_file(options.out / name));
  finish_corpus_folder(options.out, manifest);
}

}  // namespace lockstep
