#include "data/parallel/translated_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "data/parallel/describe_corpus.h"
#include "data/parallel/prepare_corpus.h"
#include "support/debian_mirror.h"
#include "support/expect_error.h"
#include "support/local_server.h"
#include "support/mo_writer.h"

namespace lockstep {
namespace {

using testing::DebianMirrorFolder;

const Languages kGerman{"en", "de"};

TEST(TranslatedFiles, AreKnownByTheirPaths) {
  auto kind = [](const char* path) { return kind_of(path, kGerman); };
  EXPECT_EQ(kind("usr/share/locale/de/LC_MESSAGES/a.mo"), TextKind::kCatalogue);
  EXPECT_EQ(kind("usr/lib/python3/dist-packages/x/de/LC_MESSAGES/a.mo"), TextKind::kCatalogue);
  EXPECT_EQ(kind("usr/share/locale/fr/LC_MESSAGES/a.mo"), std::nullopt);
  EXPECT_EQ(kind("usr/share/man/de/man1/ls.1.gz"), TextKind::kManual);
  EXPECT_EQ(kind("usr/share/man/man1/ls.1.gz"), std::nullopt);
  EXPECT_EQ(kind("usr/share/help/de/gedit/a.page"), TextKind::kHelp);
  EXPECT_EQ(kind("usr/share/doc/HTML/de/kate/index.docbook"), TextKind::kHelp);
  EXPECT_EQ(kind("usr/share/doc/book/html/de-DE/ch01.html"), TextKind::kHandbook);
  EXPECT_EQ(kind("usr/share/debian-reference/ch01.de.html"), TextKind::kHandbook);
  EXPECT_EQ(kind("usr/share/doc/x/node/de.png"), std::nullopt);
  EXPECT_EQ(kind("usr/share/doc/model.html"), std::nullopt);
}

TEST(TranslatedFiles, AreBesideTheirOriginals) {
  EXPECT_EQ(originals_of("usr/share/man/de/man1/ls.1.gz", kGerman),
            std::vector<std::string>{"usr/share/man/man1/ls.1.gz"});
  const std::vector<std::string> help = originals_of("usr/share/help/de/gedit/a.page", kGerman);
  EXPECT_NE(std::find(help.begin(), help.end(), "usr/share/help/C/gedit/a.page"), help.end());
  const std::vector<std::string> book = originals_of("usr/share/r/ch01.de.html", kGerman);
  EXPECT_EQ(book.front(), "usr/share/r/ch01.en.html");
  EXPECT_EQ(book.back(), "usr/share/r/ch01.html");
}

std::string catalogue(const std::string& kind, int first, int count) {
  testing::MoStrings strings{testing::mo_header()};
  for (int i = first; i < first + count; ++i) {
    const std::string a{static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26),
                        static_cast<char>('a' + i % 7)};
    strings.push_back({"Open the " + kind + " &" + a + " now", "Jetzt " + kind + " ö&ffnen " + a});
  }
  std::sort(strings.begin(), strings.end());
  return testing::mo_bytes(strings);
}

class MoreCatalogues : public ::testing::Test {
 protected:
  MoreCatalogues() : served_(folder_.path() / "served", "bookworm") {
    served_.add("alpha", {{"./usr/share/locale/de/LC_MESSAGES/a.mo", catalogue("alpha", 0, 120)},
                          {"./usr/share/locale/fr/LC_MESSAGES/a.mo", "not read"}});
    served_.add("beta", {{"./usr/share/locale/de/LC_MESSAGES/b.mo", catalogue("beta", 0, 120)},
                         {"./usr/share/locale/de/LC_MESSAGES/bad.mo", "no catalogue"}});
    served_.add("help", {{"./usr/share/help/C/h/a.page",
                          "<page><title>The first of them</title>"
                          "<p>A long paragraph stands here.</p>"},
                         {"./usr/share/help/de/h/a.page",
                          "<page><title>Das erste davon</title>"
                          "<p>Ein langer Absatz steht hier.</p>"},
                         {"./usr/share/help/de/h/lonely.page", "<page><p>Allein</p></page>"}});
    served_.add("pages-de", {{"./usr/share/man/de/man1/x.1.gz",
                              testing::gz_of(".SH NAME\nx \\- zeigt alle Dateien an\n"
                                             ".SH ÜBERSETZUNG\nVon jemandem.\n")}});
    served_.add("tool", {{"./usr/share/man/man1/x.1.gz",
                          testing::gz_of(".SH NAME\nx \\- shows all of the files\n")}});
    served_.add("nothing", {{"./usr/share/doc/nothing", "x"}});
    served_.add("large", {{"./usr/share/locale/de/LC_MESSAGES/l.mo", noise(1'200'000)}});
    served_.publish();
    sources_.more = true;
    sources_.most_package_megabytes = 1;
    sources_.mirror.download = {.attempts = 3, .first_pause = std::chrono::milliseconds(1)};
    options_.out = folder_.path() / "out";
    options_.subword.vocab_size = 120;
    options_.split.dev = 0;  // the sentences are near copies of each other
    options_.split.test = 0;
  }

  // Does not compress.
  static std::string noise(int bytes) {
    std::string out;
    uint32_t state = 1;
    for (int i = 0; i < bytes; ++i) {
      state = state * 1664525 + 1013904223;
      out += static_cast<char>(state >> 24);
    }
    return out;
  }

  static int64_t count(const LocalServer& server, const std::string& name) {
    const std::vector<std::string> requests = server.requests();
    return std::count_if(requests.begin(), requests.end(), [&](const std::string& request) {
      return request.find(name) != std::string::npos;
    });
  }

  static const SourceRecord* find(const Manifest& manifest, const std::string& name) {
    for (const SourceRecord& source : manifest.sources) {
      if (source.name == name) return &source;
    }
    return nullptr;
  }

  TemporaryFolder folder_;
  DebianMirrorFolder served_;
  CatalogueSources sources_;
  CorpusOptions options_;
};

TEST_F(MoreCatalogues, ComeFromAllPackagesThatHaveTexts) {
  LocalServer server(folder_.path() / "served");
  sources_.mirror.url = server.url();
  const PreparedCorpus corpus = prepare_catalogues(sources_, options_);
  const Manifest& m = corpus.manifest;
  EXPECT_EQ(m.inputs.size(), 5u);  // neither nothing nor large
  EXPECT_EQ(count(server, "nothing_"), 0);
  EXPECT_EQ(count(server, "large_"), 0);
  ASSERT_NE(find(m, "alpha"), nullptr);
  EXPECT_EQ(find(m, "alpha")->pairs_read, 120);
  EXPECT_EQ(find(m, "beta")->files, 1);  // the damaged one is left out
  ASSERT_NE(find(m, "help"), nullptr);
  EXPECT_EQ(find(m, "help")->kind, "help pages");
  EXPECT_EQ(find(m, "help")->pairs_read, 2);
  ASSERT_NE(find(m, "pages-de"), nullptr);
  EXPECT_EQ(find(m, "pages-de")->pairs_read, 2);  // NAME and the line; not the translators
  int64_t kept = 0;
  for (const SourceRecord& source : m.sources) kept += source.pairs_kept;
  int64_t pairs = 0;
  for (const SplitRecord& split : m.splits) pairs += split.pairs;
  EXPECT_EQ(kept, pairs);
  const std::vector<std::string> english = read_lines(options_.out / "train.en");
  auto has = [&](const std::string& line) {
    return std::find(english.begin(), english.end(), line) != english.end();
  };
  EXPECT_TRUE(has("Open the alpha aaa now"));  // without its accelerator
  EXPECT_TRUE(has("x - shows all of the files"));
  EXPECT_TRUE(has("A long paragraph stands here."));
  EXPECT_NE(describe_corpus(corpus.manifest).find("manual pages"), std::string::npos);
  // What the manifest says can be read back, and the folder is recognized without the network.
  EXPECT_EQ(read_manifest(options_.out).sources.size(), m.sources.size());
  sources_.mirror.url = "http://127.0.0.1:1";
  EXPECT_TRUE(prepare_catalogues(sources_, options_).was_there);
}

TEST_F(MoreCatalogues, AreToldBeforeTheyAreFetched) {
  LocalServer server(folder_.path() / "served");
  sources_.mirror.url = server.url();
  const std::string plan = plan_more(sources_, options_);
  EXPECT_NE(plan.find("packages      5"), std::string::npos) << plan;
  EXPECT_NE(plan.find("1  larger packages"), std::string::npos) << plan;
  EXPECT_EQ(count(server, ".deb"), 0);
}

TEST_F(MoreCatalogues, GoOnAfterAnInterruption) {
  {
    LocalServer server(folder_.path() / "served",
                       R"({"pool/main/tool_1.0-1_all.deb": [{"status": 404}]})");
    sources_.mirror.url = server.url();
    EXPECT_ERROR(prepare_catalogues(sources_, options_), DataError, "tool_1.0-1_all.deb");
  }
  LocalServer server(folder_.path() / "served");
  sources_.mirror.url = server.url();
  EXPECT_FALSE(prepare_catalogues(sources_, options_).was_there);
  EXPECT_EQ(count(server, "alpha_"), 0);  // was there
  EXPECT_EQ(count(server, "tool_"), 1);
  EXPECT_EQ(count(server, "Contents"), 0);
}

TEST_F(MoreCatalogues, NeedASuiteWithTexts) {
  LocalServer server(folder_.path() / "served");
  sources_.mirror.url = server.url();
  options_.target_language = "xx";
  EXPECT_ERROR(prepare_catalogues(sources_, options_), DataError, "has texts in \"xx\"");
  sources_.most_package_megabytes = 0;
  EXPECT_ERROR(prepare_catalogues(sources_, options_), ConfigError, "--max-package-mb 0");
}

}  // namespace
}  // namespace lockstep
