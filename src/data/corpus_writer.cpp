#include "data/corpus_writer.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/ordered_parallel.h"
#include "data/progress.h"
#include "formats/token_file.h"

namespace lockstep {

namespace {

constexpr const char* kUnfinished = ".unfinished";  // there while a corpus is being written
constexpr int64_t kBlock = 512;                     // pairs that a thread encodes at a time

std::vector<std::string> names_of_files(const Manifest& wanted) {
  std::vector<std::string> out{"subword.model", "subword.vocab"};
  for (const char* split : {"train", "dev", "test"}) {
    out.push_back(fmt::format("{}.tokens", split));
    out.push_back(fmt::format("{}.{}", split, wanted.source_language));
    out.push_back(fmt::format("{}.{}", split, wanted.target_language));
  }
  return out;
}

// "vocab is 6000 there, 8000 here" for everything in which the two differ.
std::string differences(const Manifest& there, const Manifest& here) {
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

struct EncodedPair {
  std::vector<int32_t> source, target;
};

// Writes one split as text and tokens.
class SplitWriter {
 public:
  SplitWriter(const CorpusOptions& options, const SplitPairs& split, const Subword& subword)
      : split_(split),
        subword_(subword),
        source_(options.out / (split.name + "." + options.source_language)),
        target_(options.out / (split.name + "." + options.target_language)),
        tokens_(options.out / (split.name + ".tokens"), {subword.vocab_size(), subword.sha256()}) {
    record_.name = split.name;
    record_.seen_in_train = split.seen_in_train;
  }

  SplitRecord run(DropCounts& dropped) {
    auto count = static_cast<int64_t>(split_.order.size());
    Progress progress("encoding " + split_.name, "pairs", count);
    int64_t done = 0;
    ordered_parallel((count + kBlock - 1) / kBlock, available_cores(),
                     [&](int64_t block) {
                       return encode(block * kBlock, std::min(count, (block + 1) * kBlock));
                     },
                     [&](const std::vector<EncodedPair>& encoded) {
                       for (const EncodedPair& pair : encoded) {
                         progress.show(done);
                         write(done++, pair, dropped);
                       }
                     });
    source_.finish();
    target_.finish();
    tokens_.finish();
    record_.pairs = tokens_.pairs();
    record_.source_tokens = tokens_.source_tokens();
    record_.target_tokens = tokens_.target_tokens();
    return record_;
  }

 private:
  PairView pair(int64_t i) const {
    return (*split_.pairs)[split_.order[static_cast<std::size_t>(i)]];
  }

  std::vector<EncodedPair> encode(int64_t begin, int64_t end) const {
    std::vector<EncodedPair> out;
    for (int64_t i = begin; i < end; ++i) {
      out.push_back({subword_.encode(pair(i).source), subword_.encode(pair(i).target)});
    }
    return out;
  }

  void write(int64_t i, const EncodedPair& encoded, DropCounts& dropped) {
    if (encoded.source.empty() || encoded.target.empty()) {
      ++dropped["nothing left after Unicode normalisation"];
      return;
    }
    PairView text = pair(i);
    source_.write(text.source);
    source_.write("\n");
    target_.write(text.target);
    target_.write("\n");
    tokens_.add(encoded.source, encoded.target);
    record_.source_words += count_words(text.source);
    record_.target_words += count_words(text.target);
    record_.text_bytes += static_cast<int64_t>(text.source.size() + text.target.size() + 2);
  }

  const SplitPairs& split_;
  const Subword& subword_;
  OutputFile source_, target_;
  TokenFileWriter tokens_;
  SplitRecord record_;
};

Subword make_subwords(const CorpusOptions& options, const SplitPairs& train) {
  std::size_t next = 0;
  std::string model = learn_subwords(options.subword, [&](std::string_view& sentence) {
    if (next >= 2 * train.order.size()) return false;
    PairView pair = (*train.pairs)[train.order[next / 2]];
    sentence = next % 2 == 0 ? pair.source : pair.target;
    ++next;
    return true;
  });
  Subword subword = Subword::from_bytes(model);
  write_file(options.out / "subword.model", model);
  write_file(options.out / "subword.vocab", subword.vocabulary_text());
  return subword;
}

}  // namespace

std::optional<Manifest> open_corpus_folder(const fs::path& out, const Manifest& wanted) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw MachineError("{}: cannot be created: {}", out.string(), error.message());
  if (fs::exists(out / kManifestName)) {
    Manifest there = read_manifest(out);
    if (there.same_origin(wanted)) return there;
    ConfigError refusal("{} already holds a prepared corpus, made in another way", out.string());
    refusal.set_cause(differences(there, wanted));
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

void write_corpus(const CorpusOptions& options, const std::vector<SplitPairs>& splits,
                  Manifest& manifest) {
  const SplitPairs& train = splits.front();
  if (train.order.empty()) {
    throw DataError("no sentence pair is left to train on, of {} that were read",
                    with_commas(manifest.pairs_read));
  }
  log_info("learning {} subwords on {} pairs", with_commas(options.subword.vocab_size),
           with_commas(static_cast<int64_t>(train.order.size())));
  Subword subword = make_subwords(options, train);
  manifest.vocab_size = subword.vocab_size();
  std::vector<std::string> names{"subword.model", "subword.vocab"};
  for (const SplitPairs& split : splits) {
    manifest.splits.push_back(SplitWriter(options, split, subword).run(manifest.dropped));
    for (const std::string& ending :
         {std::string("tokens"), options.source_language, options.target_language}) {
      names.push_back(split.name + "." + ending);
    }
  }
  for (const std::string& name : names) manifest.files.push_back(record_file(options.out / name));
  sync_folder(options.out);
  write_manifest(options.out, manifest);
  fs::remove(options.out / kUnfinished);
}

}  // namespace lockstep
