#include "data/parallel/prepare_corpus.h"

#include <gtest/gtest.h>

#include <string>

#include "data/parallel/gettext_corpus.h"
#include "formats/token_file.h"
#include "support/expect_error.h"
#include "support/mo_writer.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

class PreparedFolder : public ::testing::Test {
 protected:
  fs::path in(const std::string& name) const { return folder_.path() / name; }

  // Numbered sentences of ten words each side; `count` of them, from `first` on.
  ParallelFiles write_text(const std::string& name, int first, int count) const {
    const std::string letters = "abcdefghijklmnopqrstuvwxyz";
    std::string source;
    std::string target;
    for (int i = first; i < first + count; ++i) {
      std::string a{letters[i % 26], letters[i / 26 % 26], letters[i % 7], letters[i % 11]};
      source += "the " + a + " is not " + a + a + " today\n";
      target += "heute ist " + a + " kein " + a + a + "\n";
    }
    write_file(in(name + ".en"), source);
    write_file(in(name + ".de"), target);
    return {in(name + ".en"), in(name + ".de")};
  }

  CorpusOptions options() const {
    CorpusOptions out;
    out.out = in("out");
    out.subword.vocab_size = 120;
    out.split.dev = 0;
    out.split.test = 0;
    return out;
  }

  TextSources with_dev_and_test() const {
    return {write_text("a", 0, 200), write_text("b", 300, 10), write_text("c", 400, 10)};
  }

  TemporaryFolder folder_;
};

TEST_F(PreparedFolder, HoldsTextTokensModelAndManifest) {
  PreparedCorpus corpus = prepare_text(with_dev_and_test(), options());
  EXPECT_FALSE(corpus.was_there);
  Manifest manifest = read_manifest(in("out"));
  EXPECT_EQ(manifest.pairs_read, 220);
  EXPECT_EQ(manifest.vocab_size, 120);
  ASSERT_EQ(manifest.splits.size(), 3u);
  EXPECT_EQ(manifest.splits[0].pairs, 200);
  EXPECT_EQ(manifest.splits[0].source_words, 1200);
  EXPECT_EQ(manifest.files.size(), 2u + 3 * 3);
  Subword subword = Subword::load(in("out") / "subword.model");
  for (const SplitRecord& split : manifest.splits) {
    TokenFile tokens(in("out") / (split.name + ".tokens"));
    EXPECT_EQ(tokens.subword_sha256(), subword.sha256());
    EXPECT_EQ(tokens.source_tokens(), split.source_tokens);
    std::vector<std::string> source = read_lines(in("out") / (split.name + ".en"));
    std::vector<std::string> target = read_lines(in("out") / (split.name + ".de"));
    ASSERT_EQ(tokens.pairs(), static_cast<int64_t>(source.size()));
    for (int64_t i = 0; i < tokens.pairs(); ++i) {  // line n of both texts is pair n
      EXPECT_EQ(subword.decode(tokens.source(i)), source[i]);
      EXPECT_EQ(subword.decode(tokens.target(i)), target[i]);
    }
  }
  for (const FileRecord& file : manifest.files) {
    EXPECT_EQ(record_file(in("out") / file.name), file);
  }
  // Given splits keep their order; train is shuffled.
  EXPECT_EQ(read_lines(in("out/dev.en")), read_lines(in("b.en")));
  EXPECT_NE(read_lines(in("out/train.en")), read_lines(in("a.en")));
  EXPECT_FALSE(fs::exists(in("out/.unfinished")));
}

TEST_F(PreparedFolder, IsTheSameByteForByteWhenMadeAgain) {
  prepare_text(with_dev_and_test(), options());
  std::string first = read_file(in("out/manifest.json"));  // holds the hashes of all others
  fs::remove_all(in("out"));
  prepare_text(with_dev_and_test(), options());
  EXPECT_EQ(read_file(in("out/manifest.json")), first);
}

TEST_F(PreparedFolder, IsNeverOverwritten) {
  prepare_text(with_dev_and_test(), options());
  fs::file_time_type time = fs::last_write_time(in("out/train.tokens"));
  EXPECT_TRUE(prepare_text(with_dev_and_test(), options()).was_there);
  CorpusOptions other = options();
  other.subword.vocab_size = 100;
  EXPECT_ERROR(prepare_text(with_dev_and_test(), other), ConfigError,
               "vocab is \"120\" there, \"100\" here");
  write_text("b", 500, 10);
  TextSources changed{
      {in("a.en"), in("a.de")}, {{in("b.en"), in("b.de")}}, {{in("c.en"), in("c.de")}}};
  EXPECT_ERROR(prepare_text(changed, options()), ConfigError, "the input files are others");
  EXPECT_EQ(fs::last_write_time(in("out/train.tokens")), time);
}

TEST_F(PreparedFolder, SparesFilesOfOthers) {
  fs::create_directories(in("out"));
  write_file(in("out/train.en"), "mine\n");
  EXPECT_ERROR(prepare_text(with_dev_and_test(), options()), ConfigError, "would be overwritten");
  EXPECT_EQ(read_file(in("out/train.en")), "mine\n");
}

TEST_F(PreparedFolder, IsFinishedAfterAnInterruption) {
  CorpusOptions wrong = options();
  wrong.subword.vocab_size = 100'000;
  EXPECT_ERROR(prepare_text(with_dev_and_test(), wrong), ConfigError,
               "larger than the text allows");
  write_file(in("out/train.en"), "left behind\n");
  EXPECT_ERROR(read_manifest(in("out")), DataError, "not a prepared corpus (no manifest.json)");
  EXPECT_FALSE(prepare_text(with_dev_and_test(), options()).was_there);
  EXPECT_EQ(read_lines(in("out/train.en")).size(), 200u);
}

TEST_F(PreparedFolder, MustBeOneThatCanBeWritten) {
  write_file(in("file"), "");
  CorpusOptions wrong = options();
  wrong.out = in("file") / "out";
  EXPECT_ERROR(prepare_text(with_dev_and_test(), wrong), MachineError, "cannot be created");
}

TEST_F(PreparedFolder, RefusesOptionsThatMakeNoSense) {
  CorpusOptions wrong = options();
  wrong.target_language = "en";
  EXPECT_ERROR(prepare_text(with_dev_and_test(), wrong), ConfigError, "are both \"en\"");
  wrong = options();
  wrong.target_language = "../de";
  EXPECT_ERROR(prepare_text(with_dev_and_test(), wrong), ConfigError, "language \"../de\"");
  wrong = options();
  wrong.cleaning.max_words = 0;
  EXPECT_ERROR(prepare_text(with_dev_and_test(), wrong), ConfigError, "max-words 0");
}

TEST_F(PreparedFolder, ComesOutOfCatalogues) {
  testing::MoStrings strings{testing::mo_header(),
                             {"%d file was read\0%d files were read"s,
                              "%d Datei wurde gelesen\0%d Dateien wurden gelesen"s}};
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  for (int i = 0; i < 200; ++i) {
    std::string a{letters[i / 26], letters[i % 26], letters[i % 7], letters[i % 5]};
    strings.push_back({"ctx\4Open the _" + a + " " + a + "x", "Den " + a + " " + a + "x ö_ffnen"});
  }
  fs::create_directories(in("de/LC_MESSAGES"));
  fs::create_directories(in("fr/LC_MESSAGES"));
  write_file(in("de/LC_MESSAGES/a.mo"), testing::mo_bytes(strings));
  write_file(in("fr/LC_MESSAGES/a.mo"), "not looked at");
  EXPECT_EQ(find_catalogues(folder_.path(), "de"),
            std::vector<fs::path>{in("de/LC_MESSAGES/a.mo")});
  EXPECT_ERROR(find_catalogues(in("none"), "de"), DataError, "none: cannot be read");
  ParallelText text = read_catalogues({in("de/LC_MESSAGES/a.mo")}, {});
  ASSERT_EQ(text.pairs.size(), 202);
  EXPECT_EQ(text.pairs[1].source, "%d files were read");
  EXPECT_EQ(text.pairs[1].target, "%d Dateien wurden gelesen");
  EXPECT_EQ(text.pairs[2].source, "Open the aaaa aaaax");
  EXPECT_EQ(text.pairs[2].target, "Den aaaa aaaax öffnen");
  CatalogueSources sources;
  sources.catalogues = folder_.path();
  CorpusOptions wanted = options();
  wanted.split.test = 5;
  PreparedCorpus corpus = prepare_catalogues(sources, wanted);
  EXPECT_EQ(corpus.manifest.command, "catalogs");
  EXPECT_EQ(corpus.manifest.find_split("test")->pairs, 5);
  EXPECT_EQ(corpus.manifest.find_split("dev"), nullptr);
  EXPECT_TRUE(prepare_catalogues(sources, wanted).was_there);
}

TEST_F(PreparedFolder, TellsWhenItsManifestIsDamaged) {
  prepare_text(with_dev_and_test(), options());
  std::string text = read_file(in("out/manifest.json"));
  write_file(in("out/manifest.json"), text.substr(0, text.size() / 2));
  EXPECT_ERROR(read_manifest(in("out")), DataError, "damaged manifest");
  write_file(in("out/manifest.json"), R"({"format_version": 99})");
  EXPECT_ERROR(read_manifest(in("out")), DataError, "format version 99");
  write_file(in("out/manifest.json"), R"({"format_version": 1})");
  EXPECT_ERROR(read_manifest(in("out")), DataError, "lockstep_version");
}

}  // namespace
}  // namespace lockstep
