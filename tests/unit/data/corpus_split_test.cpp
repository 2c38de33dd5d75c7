#include "data/parallel/corpus_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/random.h"
#include "data/parallel/near_duplicates.h"

namespace lockstep {
namespace {

// Program messages out of a grammar: copies, near copies and shared sides abound.
SentencePairs make_messages(int count) {
  const std::vector<std::pair<std::string, std::string>> nouns{
      {"file", "Datei"},     {"folder", "Ordner"},   {"table", "Tabelle"}, {"index", "Verzeichnis"},
      {"window", "Fenster"}, {"printer", "Drucker"}, {"picture", "Bild"},  {"network", "Netz"}};
  const std::vector<std::pair<std::string, std::string>> verbs{
      {"open", "öffnen"},       {"close", "schließen"}, {"print", "drucken"}, {"send", "senden"},
      {"rename", "umbenennen"}, {"insert", "einfügen"}, {"delete", "löschen"}};
  SentencePairs out;
  for (int i = 0; i < count; ++i) {
    auto pick = [&](uint64_t what, const auto& from) {
      return from[random_below(7, 10u * i + what, from.size())];
    };
    auto [a, b, v] = std::tuple(pick(1, nouns), pick(2, nouns), pick(3, verbs));
    std::string number = std::to_string(random_below(7, 10u * i + 4, 3));
    out.add(
        "Cannot " + v.first + " the " + a.first + " while a " + b.first + " is used " + number,
        "Kann " + a.second + " nicht " + v.second + ", da " + b.second + " benutzt wird " + number);
  }
  return out;
}

const SplitRules kRules{.dev = 10, .test = 10, .min_words = 3, .near_copy = 0.75, .seed = 1};

// The slow and independent check: every held-out sentence against every other one.
void expect_no_leak(const SentencePairs& pairs, const CorpusSplit& split, double near_copy) {
  std::vector<int64_t> held_out = split.test;
  held_out.insert(held_out.end(), split.dev.begin(), split.dev.end());
  auto near = [&](std::string_view a, std::string_view b) {
    std::string x = comparison_key(a);
    std::string y = comparison_key(b);
    std::set<std::string> all;
    std::set<std::string> both;
    auto grams = [](const std::string& key) {
      std::set<std::string> out;
      std::string padded = " " + key + " ";
      for (std::size_t i = 0; i + 3 <= padded.size(); ++i) out.insert(padded.substr(i, 3));
      return out;
    };
    std::set<std::string> p = grams(x);
    std::set<std::string> q = grams(y);
    std::set_intersection(p.begin(), p.end(), q.begin(), q.end(), std::inserter(both, both.end()));
    std::set_union(p.begin(), p.end(), q.begin(), q.end(), std::inserter(all, all.end()));
    // Bytes and not characters here: a margin for the few umlauts.
    return x == y || static_cast<double>(both.size()) >= (near_copy + 0.03) * all.size();
  };
  for (int64_t t : held_out) {
    for (const std::vector<int64_t>& others : {split.train, held_out}) {
      for (int64_t o : others) {
        if (o == t) continue;
        EXPECT_FALSE(near(pairs[t].source, pairs[o].source)) << pairs[t].source << " / " << o;
        EXPECT_FALSE(near(pairs[t].target, pairs[o].target)) << pairs[t].target << " / " << o;
      }
    }
  }
}

TEST(CorpusSplit, LeavesNoCopyOfAHeldOutSentenceInTrain) {
  SentencePairs pairs = make_messages(600);
  CorpusSplit split = split_corpus(pairs, kRules);
  EXPECT_GE(split.test.size(), 5u);
  EXPECT_GT(split.train.size(), 100u);
  expect_no_leak(pairs, split, kRules.near_copy);
}

TEST(CorpusSplit, AccountsForEveryPair) {
  SentencePairs pairs = make_messages(600);
  CorpusSplit split = split_corpus(pairs, kRules);
  int64_t dropped = 0;
  for (const auto& [reason, count] : split.dropped) dropped += count;
  EXPECT_EQ(
      dropped + static_cast<int64_t>(split.train.size() + split.dev.size() + split.test.size()),
      pairs.size());
  EXPECT_GT(split.dropped.at("repeated pair"), 0);
  EXPECT_GT(split.dropped.at("near copy of a held-out sentence"), 0);
}

TEST(CorpusSplit, DependsOnTheSeedOnly) {
  SentencePairs pairs = make_messages(300);
  CorpusSplit a = split_corpus(pairs, kRules);
  CorpusSplit b = split_corpus(pairs, kRules);
  EXPECT_EQ(a.train, b.train);
  EXPECT_EQ(a.test, b.test);
  SplitRules other = kRules;
  other.seed = 2;
  EXPECT_NE(split_corpus(pairs, other).test, a.test);
}

TEST(CorpusSplit, HoldsOutNoShortPairAndAtMostATwentieth) {
  SentencePairs pairs;
  for (int i = 0; i < 60; ++i) {
    std::string word(1, static_cast<char>('a' + i % 26));
    std::string unique = word + word + static_cast<char>('a' + i / 26) + word + word;
    pairs.add(fmt::format("{0} {0}x {0}y", unique), fmt::format("{0}q r s {0}z", unique));
    pairs.add(unique + "k", unique + "m");
  }
  CorpusSplit split = split_corpus(pairs, {.dev = 1000, .test = 1000});
  EXPECT_EQ(split.test.size(), 6u);  // of 120
  EXPECT_EQ(split.dev.size(), 6u);
  for (int64_t i : split.test) EXPECT_GE(count_words(pairs[i].source), 3);
}

TEST(CorpusSplit, KeepsEverythingInTrainWhenNothingIsHeldOut) {
  SentencePairs pairs;
  pairs.add("one two three", "eins zwei drei");
  pairs.add("one two three", "eins zwei drei");
  pairs.add("one two three", "ein zwei drei");
  CorpusSplit split = split_corpus(pairs, {.dev = 0, .test = 0});
  EXPECT_EQ(split.train.size(), 2u);
}

TEST(CorpusSplit, CountsGivenPairsThatTrainHasToo) {
  SentencePairs train;
  train.add("A dog runs.", "Ein Hund läuft.");
  train.add("Two cats", "Zwei Katzen");
  SentencePairs dev;
  dev.add("a dog runs", "Ein Hund rennt.");
  dev.add("Three cats", "ZWEI KATZEN!");
  dev.add("A bird", "Ein Vogel");
  EXPECT_EQ(count_overlap(train, dev), 2);
}

}  // namespace
}  // namespace lockstep
