#include "data/parallel/split_writer.h"

#include <span>

namespace lockstep {

PairEncoder pair_encoder(const WordEncoder& both) {
  auto encode = [&both](std::string_view line, std::vector<int32_t>& ids) {
    both.encode(line, ids);
  };
  return {encode, encode};
}

PairEncoder pair_encoder(const TranslationTokenizer& tokenizer) {
  auto append = [](const std::vector<int32_t>& more, std::vector<int32_t>& ids) {
    ids.insert(ids.end(), more.begin(), more.end());
  };
  return {[&tokenizer, append](std::string_view line, std::vector<int32_t>& ids) {
            append(tokenizer.encode_source(line), ids);
          },
          [&tokenizer, append](std::string_view line, std::vector<int32_t>& ids) {
            append(tokenizer.encode_target(line), ids);
          }};
}

void EncodedPairs::add(PairView pair, const PairEncoder& encoder) {
  std::size_t begin = ids.size();
  encoder.source(pair.source, ids);
  std::size_t middle = ids.size();
  encoder.target(pair.target, ids);
  if (middle == begin || ids.size() == middle) {
    ids.resize(begin);
    ++empty;
    return;
  }
  lengths.push_back(middle - begin);
  lengths.push_back(ids.size() - middle);
  source.append(pair.source) += '\n';
  target.append(pair.target) += '\n';
  source_words += count_words(pair.source);
  target_words += count_words(pair.target);
}

SplitWriter::SplitWriter(const Place& place, const TokenFileInfo& vocabulary)
    : source_(place.folder / (place.name + "." + place.source_language)),
      target_(place.folder / (place.name + "." + place.target_language)),
      tokens_(place.folder / (place.name + ".tokens"), vocabulary) {
  record_.name = place.name;
}

void SplitWriter::write(const EncodedPairs& pairs, DropCounts& dropped) {
  source_.write(pairs.source);
  target_.write(pairs.target);
  std::span<const int32_t> rest(pairs.ids);
  for (std::size_t i = 0; i < pairs.lengths.size(); i += 2) {
    std::size_t source = pairs.lengths[i];
    std::size_t target = pairs.lengths[i + 1];
    tokens_.add(rest.first(source), rest.subspan(source, target));
    rest = rest.subspan(source + target);
  }
  record_.source_words += pairs.source_words;
  record_.target_words += pairs.target_words;
  record_.text_bytes += static_cast<int64_t>(pairs.source.size() + pairs.target.size());
  if (pairs.empty > 0) dropped["nothing left after Unicode normalisation"] += pairs.empty;
}

SplitRecord SplitWriter::finish() {
  source_.finish();
  target_.finish();
  tokens_.finish();
  record_.pairs = tokens_.pairs();
  record_.source_tokens = tokens_.source_tokens();
  record_.target_tokens = tokens_.target_tokens();
  return record_;
}

}  // namespace lockstep
